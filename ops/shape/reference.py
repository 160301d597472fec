"""NumPy references of the ops that rearrange elements (reshape, slice, concat, pad, roll, diagonal, …) and of their
gradients. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as
NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None: not
compared)."""
import numpy as np


def reshape(x, shape):
    return np.reshape(x, [x.shape[i] if d == 0 and i < x.ndim else d for i, d in enumerate(shape)])


def share_data(x):
    return x


def transpose(x, perm):
    return np.transpose(x, perm)


def squeeze(x, axis):
    axes = [a % max(x.ndim, 1) for a in axis] or range(x.ndim)
    return x.reshape([d for i, d in enumerate(x.shape) if not (i in axes and d == 1)])


def unsqueeze(x, axis):
    for a in axis:
        x = np.expand_dims(x, a)
    return x


def flatten(x, start_axis, stop_axis):
    if x.ndim == 0:
        return x.reshape([1])
    start, stop = start_axis % x.ndim, stop_axis % x.ndim
    return x.reshape(x.shape[:start] + (int(np.prod(x.shape[start:stop + 1])),) + x.shape[stop + 1:])


def expand(x, shape):
    lead = len(shape) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if d == -1 else d for i, d in enumerate(shape)])


broadcast_to = expand


def expand_as(x, y):
    return np.broadcast_to(x, y.shape)


def _cut(shape, axes, starts, ends, strides, decrease_axis):
    """The index of a slice with Paddle's bounds: with a negative stride an end of -1 lies before element 0."""
    index = [np.s_[:]] * len(shape)
    for k, axis in enumerate(axes):
        dim, start, end = shape[axis], starts[k], ends[k]
        step = strides[k] if strides else 1
        if start == -1 and end == 0 and axis in decrease_axis:
            end = dim
        start = max(start + dim, 0) if start < 0 else start
        if end < 0 and not (end == -1 and step < 0):
            end = max(end + dim, 0)
        index[axis] = np.s_[min(start, dim - 1) if step < 0 else start:None if end == -1 else end:step]
        if axis in decrease_axis:
            index[axis] = start
    return tuple(index)


def slice(input, axes, starts, ends, decrease_axis):
    return input[_cut(input.shape, axes, starts, ends, [], decrease_axis)]


def strided_slice(x, axes, starts, ends, strides, decrease_axis):
    return x[_cut(x.shape, axes, starts, ends, strides, decrease_axis)]


def strided_slice_grad(d_out, shape, axes, starts, ends, strides, decrease_axis):
    d_x = np.zeros(shape, d_out.dtype)
    d_x[_cut(shape, axes, starts, ends, strides, decrease_axis)] = d_out
    return d_x


def _places(shape, stride, offset):
    at = np.full(shape, offset, np.int64)
    for axis, (n, s) in enumerate(zip(shape, stride)):
        at += (np.arange(n) * s).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return at


def as_strided(x, shape, stride, offset):
    return np.take(x.reshape(-1), _places(shape, stride, offset))


def as_strided_grad(d_out, x_shape, shape, stride, offset):
    d_x = np.zeros(int(np.prod(x_shape)), d_out.dtype)
    np.add.at(d_x, _places(shape, stride, offset), d_out)
    return d_x.reshape(x_shape)


def set_strided(x, value, shape, strides, offset):
    out = x.copy().reshape(-1)
    out[_places(shape, strides, offset)] = value
    return out.reshape(x.shape)


def concat(x, axis, axis_tensor):
    return np.concatenate(x, axis_tensor[0] if len(axis_tensor) else axis)


def split(x, sections, num, axis, axis_tensor):
    axis = axis_tensor[0] if len(axis_tensor) else axis
    if not len(sections):
        return np.split(x, num, axis)
    known = sum(s for s in sections if s >= 0)
    sections = [x.shape[axis] - known if s < 0 else s for s in sections]
    return np.split(x, np.cumsum(sections)[:-1], axis)


def stack(x, axis):
    return np.stack(x, axis)


def unstack(x, axis, num):
    return [np.take(x, i, axis) for i in range(x.shape[axis])]


def unbind(input, axis):
    return unstack(input, axis, 0)


def shape(input):
    return np.array(input.shape, np.int32)


def size(x):
    return np.array(x.size, np.int64)


def tile(x, repeat_times):
    return np.tile(x, [1] * (x.ndim - len(repeat_times)) + list(repeat_times))


def tile_grad(d_out, shape, repeat_times):
    rank = max(len(shape), len(repeat_times))
    full = [1] * (rank - len(shape)) + list(shape)
    times = [1] * (rank - len(repeat_times)) + list(repeat_times)
    pairs = [n for pair in zip(times, full) for n in pair]
    return d_out.reshape(pairs).sum(tuple(range(0, 2 * rank, 2)), dtype=d_out.dtype).reshape(shape)


def _pad(x, before_after, mode, value):
    cut = tuple(np.s_[max(-b, 0):n + min(a, 0)] for (b, a), n in zip(before_after, x.shape))
    widths = [(max(b, 0), max(a, 0)) for b, a in before_after]
    if mode == "constant":
        return np.pad(x[cut], widths, constant_values=value)
    return np.pad(x[cut], widths, mode={"replicate": "edge", "circular": "wrap"}.get(mode, mode))


def pad(x, paddings, pad_value):
    return _pad(x, list(zip(paddings[::2], paddings[1::2])), "constant", pad_value)


def _spatial(ndim, paddings, data_format):
    pairs = list(zip(paddings[::2], paddings[1::2]))[::-1]
    return [(0, 0)] + pairs + [(0, 0)] if data_format[-1] == "C" else [(0, 0), (0, 0)] + pairs


def pad3d(x, paddings, mode, value, data_format):
    return _pad(x, _spatial(x.ndim, paddings, data_format), mode, value)


def pad3d_grad(d_out, shape, paddings, mode, data_format):
    numbers = np.arange(1, np.prod(shape) + 1).reshape(shape)
    places = _pad(numbers, _spatial(len(shape), paddings, data_format), mode, 0)
    d_x = np.zeros(int(np.prod(shape)) + 1, d_out.dtype)
    np.add.at(d_x, places, d_out)
    return d_x[1:].reshape(shape)


def flip(x, axis):
    return np.flip(x, axis)


def roll(x, shifts, axis):
    return np.roll(x, shifts, tuple(axis)) if len(axis) else np.roll(x, shifts[0])


def one_hot(x, num_classes, depth_tensor, dtype, allow_out_of_range):
    depth = depth_tensor[0] if len(depth_tensor) else num_classes
    return (x[..., None] == np.arange(depth)).astype(np.float32)


def meshgrid(inputs):
    return np.meshgrid(*inputs, indexing="ij")


def diag(x, offset, padding_value):
    if x.ndim == 2:
        return np.diag(x, offset) if -x.shape[0] < offset < x.shape[1] else x[:0, 0]
    x = x.reshape(-1)
    n = x.size + abs(offset)
    out = np.full((n, n), padding_value, x.dtype)
    rows = np.arange(x.size) - min(offset, 0)
    out[rows, rows + offset] = x
    return out


def diagonal(x, offset, axis1, axis2):
    return np.diagonal(x, offset, axis1, axis2)


def diagonal_grad(d_out, shape, offset, axis1, axis2):
    out = np.zeros(shape, d_out.dtype)
    taken = np.diagonal(out, offset, axis1, axis2)
    taken.flags.writeable = True
    taken[...] = d_out
    return out


def diag_embed(input, offset, dim1, dim2):
    ndim, n = input.ndim + 1, input.shape[-1] + abs(offset)
    shape = list(input.shape[:-1])
    for axis in sorted((dim1 % ndim, dim2 % ndim)):
        shape.insert(axis, n)
    return diagonal_grad(input, shape, offset, dim1, dim2)


def trace(x, offset, axis1, axis2):
    return np.asarray(np.diagonal(x, offset, axis1, axis2).sum(-1, dtype=x.dtype))


def fill_diagonal_tensor(x, y, offset, dim1, dim2):
    out = x.copy()
    taken = np.diagonal(out, offset, dim1, dim2)
    taken.flags.writeable = True
    taken[...] = y
    return out


def fill_diagonal(x, value, offset, wrap):
    out = x.copy()
    if x.ndim == 2:
        rows, columns = x.shape
        for i in range(0, x.size if wrap else min(x.size, columns * columns), columns + 1):
            if 0 <= i % columns + offset < columns:
                out.reshape(-1)[i + offset] = value
        return out
    for i in range(x.shape[0] if x.size else 0):
        out[(i,) * x.ndim] = value
    return out


def view_dtype(x, dtype):
    to = {"I32": np.int32, "U8": np.uint8, "F64": np.float64}[dtype]
    return x.reshape(x.shape).view(to) if x.ndim else x.reshape(1).view(to)[0].reshape(())
