"""1-D to 3-D max and average pooling, fixed and adaptive, with and without argmax indices, in real Paddle. One
function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors,
and saves the outputs that it returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
from paddle.nn import functional as F


def _padding(padding, algorithm):
    return list(padding) if algorithm == "EXPLICIT" else algorithm


def _format(n, data_format):
    return "NCDHW" if n == 3 and data_format == "NCHW" else data_format


def _windows(kernel_size, stride, padding, ceil_mode, padding_algorithm):
    return {"kernel_size": list(kernel_size), "stride": list(stride) or None, "ceil_mode": ceil_mode,
            "padding": _padding(padding, padding_algorithm)}


def _last_to_first(f, x, data_format):
    """Paddle's 1-D pooling and its adaptive max pooling know channels first only."""
    if data_format not in ("NLC", "NHWC", "NDHWC"):
        return f(x)
    n = len(x.shape)
    y = f(x.transpose([0, n - 1, *range(1, n - 1)]))
    return y.transpose([0, *range(2, n), 1])


def max_pool1d(x, data_format, **fields):
    return _last_to_first(lambda t: F.max_pool1d(t, **_windows(**fields)), x, data_format)


def max_pool2d(x, data_format, **fields):
    return F.max_pool2d(x, data_format=data_format, **_windows(**fields))


def max_pool3d(x, data_format, **fields):
    return F.max_pool3d(x, data_format=_format(3, data_format), **_windows(**fields))


def avg_pool1d(x, data_format, exclusive, **fields):
    return _last_to_first(lambda t: F.avg_pool1d(t, exclusive=exclusive, **_windows(**fields)), x, data_format)


def avg_pool2d(x, data_format, exclusive, **fields):
    return F.avg_pool2d(x, data_format=data_format, exclusive=exclusive, **_windows(**fields))


def avg_pool3d(x, data_format, exclusive, **fields):
    return F.avg_pool3d(x, data_format=_format(3, data_format), exclusive=exclusive, **_windows(**fields))


def _adaptive(f):
    return lambda x, output_size, data_format: _last_to_first(
        lambda t: f(t, output_size[0] if len(output_size) == 1 else list(output_size)), x, data_format)


adaptive_max_pool1d, adaptive_avg_pool1d = _adaptive(F.adaptive_max_pool1d), _adaptive(F.adaptive_avg_pool1d)
adaptive_max_pool2d, adaptive_avg_pool2d = _adaptive(F.adaptive_max_pool2d), _adaptive(F.adaptive_avg_pool2d)
adaptive_max_pool3d, adaptive_avg_pool3d = _adaptive(F.adaptive_max_pool3d), _adaptive(F.adaptive_avg_pool3d)


def _with_index(pool, adaptive_pool):
    def run(x, kernel_size, stride, padding, adaptive):
        if adaptive:
            return adaptive_pool(x, list(kernel_size), return_mask=True)
        return pool(x, list(kernel_size), list(stride) or None, list(padding), return_mask=True)
    return run


max_pool2d_with_index = _with_index(F.max_pool2d, F.adaptive_max_pool2d)
max_pool3d_with_index = _with_index(F.max_pool3d, F.adaptive_max_pool3d)
