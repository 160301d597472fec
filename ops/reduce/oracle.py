"""Reductions (sum, max, p_norm, …), argmax and argmin, and cumulative ops (cumsum, cummax, …) in real Paddle. One
function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors,
and saves the outputs that it returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
import paddle

_DTYPES = {"BOOL": "bool", "I32": "int32", "I64": "int64", "F16": "float16", "F32": "float32", "F64": "float64",
           "C64": "complex64", "C128": "complex128", None: None}


def _axes(axis):
    return list(axis) if axis else None


def sum(x, axis=(), dtype=None, keepdim=False):
    return paddle.sum(x, _axes(axis), _DTYPES[dtype], keepdim)


def prod(x, axis=(), dtype=None, keepdim=False):
    return paddle.prod(x, _axes(axis), keepdim, _DTYPES[dtype])


def mean(x, axis=(), keepdim=False):
    return paddle.mean(x, _axes(axis), keepdim)


def variance(x, axis=(), unbiased=True, keepdim=False):
    return paddle.var(x, _axes(axis), unbiased, keepdim)


def max(x, axis=(), keepdim=False):
    return paddle.max(x, _axes(axis), keepdim)


def min(x, axis=(), keepdim=False):
    return paddle.min(x, _axes(axis), keepdim)


def amax(x, axis=(), keepdim=False):
    return paddle.amax(x, _axes(axis), keepdim)


def amin(x, axis=(), keepdim=False):
    return paddle.amin(x, _axes(axis), keepdim)


def any(x, axis=(), keepdim=False):
    return paddle.any(x, _axes(axis), keepdim)


def all(x, axis=(), keepdim=False):
    return paddle.all(x, _axes(axis), keepdim)


def logsumexp(x, axis=(), keepdim=False):
    return paddle.logsumexp(x, _axes(axis), keepdim)


def p_norm(x, porder=2.0, axis=-1, epsilon=1e-12, keepdim=False, asvector=False):
    return paddle._C_ops.p_norm(x, float(porder), axis, epsilon, keepdim, asvector)


def argmax(x, axis=None, keepdim=False, dtype=None):
    return paddle.argmax(x, axis, keepdim, _DTYPES[dtype or "I64"])


def argmin(x, axis=None, keepdim=False, dtype=None):
    return paddle.argmin(x, axis, keepdim, _DTYPES[dtype or "I64"])


def cumsum(x, axis=None, dtype=None, flatten=False, exclusive=False, reverse=False):
    if dtype:
        x = paddle.cast(x, _DTYPES[dtype])
    return paddle._C_ops.cumsum(x, -1 if axis is None else axis, axis is None or flatten, exclusive, reverse)


def cumprod(x, dim, dtype=None):
    return paddle.cumprod(x, dim, _DTYPES[dtype])


def cummax(x, axis=-1, dtype="I64"):
    return paddle.cummax(x, axis, _DTYPES[dtype])


def cummin(x, axis=-1, dtype="I64"):
    return paddle.cummin(x, axis, _DTYPES[dtype])


def logcumsumexp(x, axis=-1, flatten=False, exclusive=False, reverse=False):
    return paddle._C_ops.logcumsumexp(x, axis, flatten, exclusive, reverse)
