"""NumPy references of INT8 ops."""
import numpy as np

import matrix


def _finished(y, scale, bias, residual, activation, alpha, beta, outer, high, dtype):
    """Of products whose channels come last."""
    y = y * scale if bias is None else y * scale + bias
    y = outer * matrix.epilogue(y, residual, activation or "none", alpha, beta)
    if dtype == "F32":
        return y.astype(np.float32)
    return np.clip(np.rint(y), 0 if dtype == "U8" else -128, high).astype(matrix.NUMPY[dtype])


def quantize_int8(x, scale, low=-128, high=127, dtype="I8"):
    return np.clip(np.rint(x * np.float32(scale)), low, high).astype(matrix.NUMPY[dtype])


def conv2d_int8(x, weight, scale, bias=None, residual=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1,
                data_format="NCHW", padding_algorithm="EXPLICIT", activation="none", alpha=0.0, beta=0.0, outer=1.0,
                high=127, dtype="F32"):
    y = matrix.loaded("conv", "reference").conv2d(x.astype(np.float64), weight.astype(np.float64), None, stride, padding,
                                                  dilation, groups, data_format, padding_algorithm)
    last = data_format == "NHWC"
    y = y if last else np.moveaxis(y, 1, -1)
    residual = residual if residual is None or last else np.moveaxis(residual, 1, -1)
    y = _finished(y, scale, bias, residual, activation, alpha, beta, outer, high, dtype)
    return y if last else np.moveaxis(y, -1, 1)


def linear_int8(x, weight, scale, bias, residual, activation, alpha, beta, outer, high, dtype):
    y = x.astype(np.float64) @ weight.astype(np.float64)
    return _finished(y, scale, bias, residual, activation, alpha, beta, outer, high, dtype)


def matmul_int8(x, y, transpose_x=False, transpose_y=False, scale=1.0, high=127, dtype="F32"):
    x, y = x.astype(np.float64), y.astype(np.float64)
    x, y = np.swapaxes(x, -1, -2) if transpose_x else x, np.swapaxes(y, -1, -2) if transpose_y else y
    return _finished(x @ y, scale, None, None, "none", 0.0, 0.0, 1.0, high, dtype)


def max_pool2d_int8(x, **options):
    return matrix.loaded("pool", "reference").max_pool2d(x.astype(np.float32), **options).astype(x.dtype)
