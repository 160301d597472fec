"""NumPy references of 1-D to 3-D max and average pooling, fixed and adaptive, with indices, and of their gradients,
as loops over output positions. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's
fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's
order (None: not compared)."""
import numpy as np

LAST = ("NHWC", "NLC", "NDHWC")


def _axis(size, kernel, stride, before, after, ceil_mode, adaptive):
    """For each window along one dim: (first input, end, length with padding)."""
    if adaptive:
        return [(i * size // kernel, -(-(i + 1) * size // kernel), 0) for i in range(kernel)]
    count = int((size + before + after - kernel + (stride - 1 if ceil_mode else 0)) / stride) + 1
    spans = [(i * stride - before, min(i * stride - before + kernel, size + before)) for i in range(count)]
    return [(max(a, 0), max(min(b, size), max(a, 0)), b - a) for a, b in spans]


def _windows(shape, kernel_size, stride, padding, ceil_mode, padding_algorithm, adaptive):
    stride = stride or kernel_size
    n = len(shape)
    if adaptive or padding_algorithm == "VALID":
        pads = [(0, 0)] * n
    elif padding_algorithm == "SAME":
        total = [max((-(-s // t) - 1) * t + k - s, 0) for s, k, t in zip(shape, kernel_size, stride)]
        pads = [(t // 2, t - t // 2) for t in total]
    else:
        pads = [(p, p) for p in padding] if len(padding) == n else list(zip(padding[::2], padding[1::2]))
    return [_axis(s, k, (stride or [1] * n)[i], *pads[i], ceil_mode, adaptive)
            for i, (s, k) in enumerate(zip(shape, kernel_size))]


def _each(x, **options):
    """For each output position: (position, its window's input slices, the window's elements with padding)."""
    axes = _windows(x.shape[2:], **options)
    for at in np.ndindex(*[len(a) for a in axes]):
        spans = [a[i] for a, i in zip(axes, at)]
        yield (slice(None), slice(None)) + at, tuple(slice(a, b) for a, b, _ in spans), np.prod([c for *_, c in spans])


def _shape(x, **options):
    return x.shape[:2] + tuple(len(a) for a in _windows(x.shape[2:], **options))


def _first(x, data_format):
    return np.moveaxis(x, -1, 1) if data_format in LAST else x


def _back(x, data_format):
    return np.moveaxis(x, 1, -1) if data_format in LAST else x


def _options(kernel_size, stride=(), padding=None, ceil_mode=False, padding_algorithm="EXPLICIT", adaptive=False):
    return {"kernel_size": list(kernel_size), "stride": list(stride), "padding": padding or [0] * len(kernel_size),
            "ceil_mode": ceil_mode, "padding_algorithm": padding_algorithm, "adaptive": adaptive}


def _pool(x, kind, exclusive, options, pick=None):
    """(maxima or means of x's windows, argmax indices in the flat plane); pick: take its elements at the argmax."""
    pick = x if pick is None else pick
    out, mask = np.zeros(_shape(x, **options), x.dtype), np.zeros(_shape(x, **options), np.int32)
    places = np.arange(int(np.prod(x.shape[2:]))).reshape(x.shape[2:])
    for at, spans, padded in _each(x, **options):
        values = x[(slice(None), slice(None)) + spans].reshape(x.shape[:2] + (-1,))
        chosen = pick[(slice(None), slice(None)) + spans].reshape(values.shape)
        if values.shape[2] == 0:
            if kind == "max":
                out[at], mask[at] = np.finfo(np.float32).min if pick is x else 0, -1
            continue
        if kind == "avg":
            count = values.shape[2] if exclusive or options["adaptive"] else padded
            out[at] = chosen.sum(2, dtype=np.float64) / count
        else:
            best = values.argmax(2)
            out[at] = np.take_along_axis(chosen, best[..., None], 2)[..., 0]
            mask[at] = places[spans].reshape(-1)[best]
    return out, mask


def max_pool2d(x, kernel_size, stride, padding, ceil_mode, data_format, padding_algorithm):
    options = _options(kernel_size, stride, padding, ceil_mode, padding_algorithm)
    return _back(_pool(_first(x, data_format), "max", True, options)[0], data_format)


def avg_pool2d(x, kernel_size, stride, padding, ceil_mode, exclusive, data_format, padding_algorithm):
    options = _options(kernel_size, stride, padding, ceil_mode, padding_algorithm)
    return _back(_pool(_first(x, data_format), "avg", exclusive, options)[0], data_format)


def adaptive_max_pool2d(x, output_size, data_format):
    return _back(_pool(_first(x, data_format), "max", True, _options(output_size, adaptive=True))[0], data_format)


def adaptive_avg_pool2d(x, output_size, data_format):
    return _back(_pool(_first(x, data_format), "avg", True, _options(output_size, adaptive=True))[0], data_format)


def max_pool2d_with_index(x, kernel_size, stride, padding, adaptive):
    return _pool(x, "max", True, _options(kernel_size, stride, padding, adaptive=adaptive))


def max_pool2d_with_index_grad(x, mask, d_out, kernel_size, stride, padding, adaptive):
    d_x = np.zeros(x.shape[:2] + (int(np.prod(x.shape[2:])),), np.float64)
    for n, c in np.ndindex(*x.shape[:2]):
        hit = mask[n, c].reshape(-1) >= 0
        np.add.at(d_x[n, c], mask[n, c].reshape(-1)[hit], d_out[n, c].reshape(-1)[hit])
    return d_x.reshape(x.shape).astype(x.dtype)


def pool2d_grad(x, out, d_out, kernel_size, stride, padding, ceil_mode, exclusive, adaptive, pooling_type, data_format,
                padding_algorithm):
    options = _options(kernel_size, stride, padding, ceil_mode, padding_algorithm, adaptive)
    first, d_first = _first(x, data_format), _first(d_out, data_format)
    d_x = np.zeros(first.shape, np.float64)
    for at, spans, padded in _each(first, **options):
        where = (slice(None), slice(None)) + spans
        values = first[where]
        if values.size == 0:
            continue
        one = (...,) + (None,) * len(kernel_size)
        if pooling_type == "avg":
            count = np.prod(values.shape[2:]) if exclusive or adaptive else padded
            d_x[where] += (d_first[at] / count)[one]
        else:
            flat = values.reshape(values.shape[:2] + (-1,))
            hit = np.arange(flat.shape[2]) == flat.argmax(2)[..., None]
            d_x[where] += hit.reshape(values.shape) * d_first[at][one]
    return _back(d_x.astype(x.dtype), data_format)


def pool2d_double_grad(x, v, kernel_size, stride, padding, ceil_mode, exclusive, adaptive, pooling_type, data_format,
                       padding_algorithm):
    options = _options(kernel_size, stride, padding, ceil_mode, padding_algorithm, adaptive)
    first, v_first = _first(x, data_format), _first(v, data_format)
    return _back(_pool(first, pooling_type, exclusive, options, v_first)[0], data_format)


max_pool1d = max_pool3d = max_pool2d
avg_pool1d = avg_pool3d = avg_pool2d
adaptive_max_pool1d = adaptive_max_pool3d = adaptive_max_pool2d
adaptive_avg_pool1d = adaptive_avg_pool3d = adaptive_avg_pool2d
max_pool3d_with_index, max_pool3d_with_index_grad = max_pool2d_with_index, max_pool2d_with_index_grad
pool3d_grad, pool3d_double_grad = pool2d_grad, pool2d_double_grad
