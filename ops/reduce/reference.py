"""NumPy references of reductions (sum, max, p_norm, …), argmax and argmin, and cumulative ops (cumsum, cummax, …),
and of cumprod_grad and logcumsumexp_grad. One function per op, named as the op: tests/ops/test_ops.py calls it with
the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op
table's order (None: not compared)."""
import numpy as np
from scipy.special import logsumexp as _logsumexp

_DTYPES = {"BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64,
           "F16": np.float16, "BF16": np.float32, "F32": np.float32, "F64": np.float64, "C64": np.complex64,
           "C128": np.complex128}


def _axes(axis):
    return tuple(axis) if axis else None


def sum(x, axis=(), dtype=None, keepdim=False):
    to = _DTYPES[dtype] if dtype else np.int64 if x.dtype in (np.bool_, np.int32) else x.dtype
    return np.sum(x, axis=_axes(axis), keepdims=keepdim, dtype=to if to != np.float16 else None).astype(to)


def mean(x, axis=(), keepdim=False):
    if x.dtype == np.bool_:
        return np.any(x, axis=_axes(axis), keepdims=keepdim)
    if x.dtype.kind in "iub":
        n = np.mean(x.astype(np.float64), axis=_axes(axis), keepdims=keepdim)
        return np.trunc(n).astype(x.dtype)
    return np.mean(x, axis=_axes(axis), keepdims=keepdim)


def variance(x, axis=(), unbiased=True, keepdim=False):
    n = x.size if not axis else int(np.prod([x.shape[i] for i in axis]))
    away = x.astype(np.float64) - np.mean(x, axis=_axes(axis), keepdims=True, dtype=np.float64)
    less = int(unbiased)
    return np.sum(away * away, axis=_axes(axis), keepdims=keepdim) / np.float64(n - less if n > less else less)


def max(x, axis=(), keepdim=False):
    return np.max(x, axis=_axes(axis), keepdims=keepdim)


def min(x, axis=(), keepdim=False):
    return np.min(x, axis=_axes(axis), keepdims=keepdim)


amax, amin = max, min


def prod(x, axis=(), dtype=None, keepdim=False):
    to = _DTYPES[dtype] if dtype else np.int64 if x.dtype == np.bool_ else x.dtype
    return np.prod(x.astype(to), axis=_axes(axis), keepdims=keepdim).astype(to)


def any(x, axis=(), keepdim=False):
    return np.any(x, axis=_axes(axis), keepdims=keepdim)


def all(x, axis=(), keepdim=False):
    return np.all(x, axis=_axes(axis), keepdims=keepdim)


def logsumexp(x, axis=(), keepdim=False):
    return _logsumexp(x, axis=_axes(axis), keepdims=keepdim)


def p_norm(x, porder=2.0, axis=-1, epsilon=1e-12, keepdim=False, asvector=False):
    a, over = np.abs(x), None if asvector or x.ndim == 0 else axis
    porder = float(porder)
    if np.isinf(porder):
        return (np.max if porder > 0 else np.min)(a, axis=over, keepdims=keepdim)
    if porder == 0:
        return np.sum(a != 0, axis=over, keepdims=keepdim).astype(x.dtype)
    return np.sum(a ** porder, axis=over, keepdims=keepdim) ** (1 / porder)


def argmax(x, axis=None, keepdim=False, dtype=None):
    return np.asarray(np.argmax(x, axis=axis, keepdims=keepdim)).astype(_DTYPES[dtype or "I64"])


def argmin(x, axis=None, keepdim=False, dtype=None):
    return np.asarray(np.argmin(x, axis=axis, keepdims=keepdim)).astype(_DTYPES[dtype or "I64"])


def cumsum(x, axis=None, dtype=None, flatten=False, exclusive=False, reverse=False):
    to = _DTYPES[dtype] if dtype else x.dtype
    if axis is None or flatten:
        x, axis = x.reshape(-1), 0
    if reverse:
        x = np.flip(x, axis)
    out = np.cumsum(x.astype(to), axis=axis, dtype=to)
    if exclusive:
        out = out - x.astype(to)
    return np.flip(out, axis) if reverse else out


def cumprod(x, dim, dtype=None):
    to = _DTYPES[dtype] if dtype else x.dtype
    return np.cumprod(x.astype(to), axis=dim, dtype=to)


def cumprod_grad(x, out, d_out, dim):
    x, out, d = (np.moveaxis(t, dim, -1) for t in (x, out, d_out))
    n = x.shape[-1]
    dx = np.zeros_like(x)
    for i in range(n):  # d out_j / d x_i: the product of x up to j without x_i
        others = x.copy()
        others[..., i] = 1
        dx[..., i] = np.sum(np.conj(np.cumprod(others, axis=-1)[..., i:]) * d[..., i:], axis=-1)
    return np.moveaxis(dx, -1, dim)


def _running(x, axis, dtype, better):
    if x.ndim == 0:
        return x, np.zeros((), _DTYPES[dtype or "I64"])
    lines = np.moveaxis(x, axis, 0)
    out, at = lines.copy(), np.zeros(lines.shape, _DTYPES[dtype or "I64"])
    for i in range(1, len(lines)):
        takes = better(lines[i], out[i - 1])
        out[i] = np.where(takes, lines[i], out[i - 1])
        at[i] = np.where(takes, i, at[i - 1])
    return np.moveaxis(out, 0, axis), np.moveaxis(at, 0, axis)


def cummax(x, axis=-1, dtype="I64"):
    return _running(x, axis, dtype, np.greater_equal)


def cummin(x, axis=-1, dtype="I64"):
    return _running(x, axis, dtype, np.less_equal)


def logcumsumexp(x, axis=-1, flatten=False, exclusive=False, reverse=False):
    if flatten:
        x, axis = x.reshape(-1), 0
    lines = np.flip(x, axis) if reverse else x
    out = np.logaddexp.accumulate(lines.astype(np.float64), axis)
    if exclusive:
        out = np.roll(out, 1, axis)
        np.moveaxis(out, axis, 0)[:1] = -np.inf
    return (np.flip(out, axis) if reverse else out).astype(x.dtype)


def logcumsumexp_grad(x, out, d_out, axis=-1, flatten=False, exclusive=False, reverse=False):
    lines, outs, d = (np.moveaxis(t.astype(np.float64), axis, 0) for t in (x, out, d_out))
    n = len(lines)
    d_x = np.zeros_like(lines)
    for i in range(n):
        for k in range(n):
            inside = k <= i if reverse else k >= i
            if inside and not (exclusive and k == i):
                d_x[i] += d[k] * np.exp(lines[i] - outs[k])
    return np.moveaxis(d_x, 0, axis).astype(x.dtype)
