"""NumPy references of the image ops: interpolate, grid_sample, affine_grid, pixel shuffles, unfold, fold, maxout,
and their gradients; interpolation positions are float32, as in Paddle. One function per op, named as the op:
tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the
outputs that it returns, in the op table's order (None: not compared)."""
import itertools

import numpy as np

F = np.float32
H = 1 / 64


def _last(data_format):
    return data_format in ("NHWC", "NLC", "NDHWC")


def _place(i, n, step, align_corners, align_mode):
    """Linear modes: (source index of the first of two taps of output i, weight of the second)."""
    edge, half = F(step) * F(i), F(F(step) * (F(i) + F(0.5))) - F(0.5)
    at = max(half, F(0)) if align_mode == 0 and not align_corners else edge
    base = min(int(at), n - 1)
    return base, at - F(base)


def _taps(n, out, step, mode, align_corners, align_mode):
    """[out, n]: weights of the n source pixels of one axis in each output."""
    m = np.zeros((out, n))
    for i in range(out):
        edge, half = F(step) * F(i), F(F(step) * (F(i) + F(0.5))) - F(0.5)
        put = lambda k, w: m.__setitem__((i, min(max(k, 0), n - 1)), m[i, min(max(k, 0), n - 1)] + float(w))
        if mode == "nearest":
            put(int(edge + F(0.5) if align_corners else edge), 1)
        elif mode == "bicubic":
            at = edge if align_corners else half
            base, a = int(np.floor(at)), -0.75
            for k in range(-1, 3):
                d = abs(float(at) - base - k)
                put(base + k, ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a)
        else:
            base, weight = _place(i, n, step, align_corners, align_mode)
            put(base, 1 - weight)
            put(base + 1, weight)
    return m


def _axes(shape, size, scale, align_corners):
    """For each spatial axis: (input length, output length, distance of outputs in source pixels)."""
    for k, n in enumerate(shape):
        factor = scale[0 if len(scale) == 1 else k] if not len(size) else 0
        out = size[k] if len(size) else int(n * float(F(factor)))
        step = 0 if out <= 1 else F(n - 1) / F(out - 1) if align_corners else F(n) / F(out) if len(size) else 1 / F(factor)
        yield n, out, step


def _apply(x, matrices, first):
    out = x.astype(np.float64)
    for k, m in enumerate(matrices):
        out = np.moveaxis(np.tensordot(m, out, (1, first + k)), 0, first + k)
    return out.astype(x.dtype)


def _mix_bytes(x, axes, first, align_corners, align_mode):
    """As Paddle: float32, each tap times its weights from the first axis on; images are summed along height, then
    width, volumes along width, height, depth; fractions are cut off."""
    ranks, taps = range(len(axes)), []
    for n, out, step in axes:
        at = [_place(i, n, step, align_corners, align_mode) for i in range(out)]
        taps.append([([k for k, _ in at], [1 - w for _, w in at]),
                     ([min(k + 1, n - 1) for k, _ in at], [w for _, w in at])])
    total = F(0)
    for choice in itertools.product((0, 1), repeat=len(axes)):
        v = x.astype(F)
        chosen = [taps[k][choice[k if len(axes) == 3 else -1 - k]] for k in ranks]
        for k in ranks:
            v = np.take(v, chosen[k][0], first + k)
        for k in ranks:
            v = v * np.asarray(chosen[k][1], F).reshape([-1 if i == first + k else 1 for i in range(x.ndim)])
        total = total + v
    return total.astype(x.dtype)


def interpolate(x, size, scale, mode, align_corners, align_mode, data_format):
    first = 1 if _last(data_format) else 2
    axes = list(_axes(x.shape[first:first + x.ndim - 2], size, scale, align_corners))
    if x.dtype == np.uint8 and mode != "nearest":
        return _mix_bytes(x, axes, first, align_corners, align_mode)
    return _apply(x, [_taps(*axis, mode, align_corners, align_mode) for axis in axes], first)


def interpolate_grad(d_out, shape, size, scale, mode, align_corners, align_mode, data_format):
    first = 1 if _last(data_format) else 2
    axes = _axes(shape[first:first + len(shape) - 2], size, scale, align_corners)
    return _apply(d_out, [_taps(*axis, mode, align_corners, align_mode).T for axis in axes], first)


def _mirrored(v, n, padding, corners):
    at = (v + 1) / 2 * (n - 1) if corners else ((v + 1) * n - 1) / 2
    if padding == "reflection":
        low, period = (0, 2 * (n - 1)) if corners else (-0.5, 2 * n)
        at = np.abs(at - low) % period
        at = np.minimum(at, period - at) + low
    return at if padding == "zeros" else np.clip(at, 0, n - 1)


def grid_sample(x, grid, mode, padding_mode, align_corners):
    size, batch = x.shape[2:], x.shape[0]
    at = [_mirrored(grid[..., len(size) - 1 - d].astype(np.float64), n, padding_mode, align_corners)
          for d, n in enumerate(size)]
    if mode == "nearest":
        at = [np.sign(a) * np.floor(np.abs(a) + 0.5) for a in at]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    n = np.arange(batch).reshape(-1, *[1] * len(size))
    for corner in itertools.product((0, 1), repeat=len(size)):
        index, weight = [], 1.0
        for a, c, m in zip(at, corner, size):
            i = np.floor(a).astype(np.int64) + c
            weight = weight * (np.abs(1 - c - (a - np.floor(a)))) * ((i >= 0) & (i < m))
            index.append(np.clip(i, 0, m - 1))
        out += np.moveaxis(np.moveaxis(x, 1, -1)[(n, *index)] * weight[..., None], -1, 1)
    return out.astype(x.dtype)


def grid_sample_grad(x, grid, d_out, mode, padding_mode, align_corners):
    """(d_x, d_grid) by central differences of step H: exact while no pixel border is crossed, as out is multilinear."""
    x, grid = x.astype(np.float64), grid.astype(np.float64)

    def slope(a, f):
        d = np.zeros_like(a)
        for i in np.ndindex(*a.shape):
            v = a[i]
            a[i] = v + H
            up = f()
            a[i] = v - H
            d[i] = ((up - f()) * d_out).sum() / (2 * H)
            a[i] = v
        return d
    run = lambda: grid_sample(x, grid, mode, padding_mode, align_corners)
    return slope(x, run), slope(grid, run)


def affine_grid(theta, out_shape, align_corners):
    size = out_shape[2:]
    lines = [np.linspace(-1, 1, n) if align_corners else (np.arange(n) * 2 + 1) / n - 1 for n in size]
    axes = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*axes[::-1], np.ones(size)], -1)
    return np.einsum("nrk,...k->n...r", theta.astype(np.float64), base).astype(theta.dtype)


def pixel_shuffle(x, upscale_factor, data_format):
    r = upscale_factor
    if _last(data_format):
        n, h, w, c = x.shape
        return x.reshape(n, h, w, c // r // r, r, r).transpose(0, 1, 4, 2, 5, 3).reshape(n, h * r, w * r, c // r // r)
    n, c, h, w = x.shape
    return x.reshape(n, c // r // r, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // r // r, h * r, w * r)


def pixel_unshuffle(x, downscale_factor, data_format):
    r = downscale_factor
    if _last(data_format):
        n, h, w, c = x.shape
        return x.reshape(n, h // r, r, w // r, r, c).transpose(0, 1, 3, 5, 2, 4).reshape(n, h // r, w // r, c * r * r)
    n, c, h, w = x.shape
    return x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4).reshape(n, c * r * r, h // r, w // r)


def channel_shuffle(x, groups, data_format):
    axis = 3 if _last(data_format) else 1
    c = x.shape[axis]
    return np.take(x, np.arange(c).reshape(groups, c // groups).T.ravel(), axis)


def temporal_shift(x, seg_num, shift_ratio, data_format, back=False):
    x = np.moveaxis(x, -1, 1) if _last(data_format) else x
    v = x.reshape(x.shape[0] // seg_num, seg_num, *x.shape[1:])
    first, second = int(x.shape[1] * F(shift_ratio)), int(x.shape[1] * 2 * F(shift_ratio))
    out = v.copy()
    for lo, hi, by in ((0, first, -1), (first, second, 1)):
        by = -by if back else by
        out[:, :, lo:hi] = 0
        if by < 0:
            out[:, 1:, lo:hi] = v[:, :-1, lo:hi]
        else:
            out[:, :-1, lo:hi] = v[:, 1:, lo:hi]
    out = out.reshape(x.shape)
    return np.moveaxis(out, 1, -1) if _last(data_format) else out


def temporal_shift_grad(d_out, seg_num, shift_ratio, data_format):
    return temporal_shift(d_out, seg_num, shift_ratio, data_format, True)


def maxout(x, groups, axis):
    axis %= x.ndim
    return x.reshape(*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1:]).max(axis + 1)


def maxout_grad(x, out, d_out, groups, axis):
    axis %= x.ndim
    split = x.reshape(*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1:])
    d = np.zeros_like(split)
    np.put_along_axis(d, np.expand_dims(split.argmax(axis + 1), axis + 1), np.expand_dims(d_out, axis + 1), axis + 1)
    return d.reshape(x.shape)


def _windows(size, kernel_sizes, strides, paddings, dilations):
    """(rows, columns) of the padded image that kernel elements read in each window; both broadcast to [kh, kw, oh, ow]."""
    at = []
    for d in range(2):
        padded = size[d] + paddings[d] + paddings[d + 2]
        count = (padded - dilations[d] * (kernel_sizes[d] - 1) - 1) // strides[d] + 1
        at.append(np.arange(kernel_sizes[d])[:, None] * dilations[d] + np.arange(count) * strides[d])
    return at[0][:, None, :, None], at[1][None, :, None, :]


def unfold(x, kernel_sizes, strides, paddings, dilations):
    rows, columns = _windows(x.shape[2:], kernel_sizes, strides, paddings, dilations)
    padded = np.pad(x, [(0, 0), (0, 0), (paddings[0], paddings[2]), (paddings[1], paddings[3])])
    out = padded[:, :, rows, columns]
    return out.reshape(x.shape[0], x.shape[1] * out.shape[2] * out.shape[3], out.shape[4] * out.shape[5])


def fold(x, output_sizes, kernel_sizes, strides, paddings, dilations):
    rows, columns = _windows(output_sizes, kernel_sizes, strides, paddings, dilations)
    wide = np.float64 if x.dtype.kind == "f" else x.dtype
    n, c = x.shape[0], x.shape[1] // (kernel_sizes[0] * kernel_sizes[1])
    h, w = output_sizes
    out = np.zeros((n, c, h + paddings[0] + paddings[2], w + paddings[1] + paddings[3]), wide)
    shape = (n, c, *np.broadcast_shapes(rows.shape, columns.shape))
    np.add.at(out, (slice(None), slice(None), rows, columns), x.reshape(shape).astype(wide))
    return out[:, :, paddings[0]:paddings[0] + h, paddings[1]:paddings[1] + w].astype(x.dtype)
