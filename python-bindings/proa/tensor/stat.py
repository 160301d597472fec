"""Statistics: var, std, median, quantile, and their forms that leave NaN out."""
from .. import _core
from .._asks import asks, need_kernel
from .._errors import of_kind
from ..framework.dims import alike, is_empty, known, reshaped
from ._tools import Tensor, dtype_name, is_number, like, need_elements, one_axis
from .manipulation import moveaxis

__all__ = ["median", "nanmedian", "nanquantile", "quantile", "std", "var"]


def _axes(axis):
    return [] if axis is None else list(axis) if isinstance(axis, (list, tuple)) else [axis]


@asks("axis[i] x~f2,f4,f8")
def var(x, axis=None, unbiased=True, keepdim=False, name=None):
    """The variance along axis: squared distances from the mean, summed, over n - 1 (n if not unbiased).

    >>> paddle.var(paddle.to_tensor([1.0, 2.0, 3.0])).item()
    1.0
    """
    if axis is None:
        need_elements("var", x)
    try:
        return _core.variance(x, axis if isinstance(axis, Tensor) else _axes(axis), bool(unbiased), keepdim)
    except RuntimeError as error:
        if dtype_name(x.dtype) in ("int32", "int64") and not _core.is_capturing():  # Paddle's mean has kernels of these
            raise ValueError(f"(InvalidArgument) var: x must be floating, got {dtype_name(x.dtype)}; cast it") from error
        raise


@asks("axis[i]")
def std(x, axis=None, unbiased=True, keepdim=False, name=None):
    """The square root of var."""
    return _core.sqrt(var(x, axis, unbiased, keepdim))


@asks("x~b,f2,f4,f8,i2,i4,i8,u1,bf")
def median(x, axis=None, keepdim=False, name=None):
    """The middle value along axis; of an even number, the mean of the two middle ones. NaN if there is one.

    >>> paddle.median(paddle.to_tensor([5.0, 1.0, 3.0])).item()
    3.0
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"median: x must be a Tensor, got {type(x).__name__}")
    need_kernel("median", "i4,i8,f4,f8", x=x)
    if is_empty(x):
        raise ValueError("median: x must have at least one element")
    ndim = len(x.shape)
    if ndim == 0 and axis not in (-1, 0, None):
        raise AssertionError(f"median: axis of a 0-D x must be -1, 0 or None, got {axis}")
    flat = axis is None or ndim == 0
    if flat:
        x, axis = _core.flatten(x), 0
    elif not isinstance(axis, int) or not -ndim <= axis < ndim:
        raise ValueError(f"median: axis must be None or an int in [-{ndim}, {ndim}), got {axis!r}")
    axis = axis % max(len(x.shape), 1)
    size = x.shape[axis]
    low, high = (size - 1) // 2, size // 2
    kind = "float64" if dtype_name(x.dtype) == "float64" else "float32"
    lowest = _core.topk(x, high + 1, axis, False)[0] if known(size) else _core.sort(x, axis, False)[0]
    out = _core.slice(lowest, [axis], [high], [high + 1])
    if not known(size) or low < high:
        out = _core.add(_core.slice(lowest, [axis], [low], [low + 1]), out)
        out = _core.scale(_core.cast(out, kind), 0.5)
    else:
        out = _core.cast(out, kind)
    if "float" in dtype_name(x.dtype):
        nans = _core.multiply(_core.cast(_core.isnan(x), kind), _core.cast(x, kind))
        out = _core.add(out, _core.sum(nans, [axis], None, True))
    if flat:
        return _core.reshape(out, [1] * ndim if keepdim else [])
    return out if keepdim else _core.squeeze(out, [axis])


@asks("x:Tensor static:axis:int,list,tuple,None axis@x!InvalidArgument")
def nanmedian(x, axis=None, keepdim=False, name=None):
    """median of what is not NaN; axis may be a list."""
    if not isinstance(x, Tensor):
        raise TypeError(f"nanmedian: x must be a Tensor, got {type(x).__name__}")
    if not isinstance(keepdim, bool) and keepdim is not None and not (is_number(keepdim) and _core.is_capturing()):
        raise of_kind(f"nanmedian: keepdim must be a bool, got {type(keepdim).__name__}")
    if any(alike(n, 0) for n in x.shape):
        raise ValueError(f"(InvalidArgument) nanmedian: x must have at least one element, got shape {x.shape}")
    if isinstance(axis, (list, tuple)) and not axis:
        raise ValueError("nanmedian: axis must not be an empty list")
    ndim = len(x.shape)
    axes = sorted(one_axis(a, ndim, "nanmedian") for a in (_axes(axis) or range(ndim))) if ndim else []
    rest = [n for i, n in enumerate(x.shape) if i not in axes]
    row = _core.reshape(moveaxis(x, axes, list(range(-len(axes), 0))), rest + [-1]) if ndim else _core.reshape(x, [1])
    floating = "float" in dtype_name(x.dtype)
    nan = _core.isnan(row) if floating else _core.full_like(row, False, "bool")
    count = _core.sum(_core.cast(_core.logical_not(nan), "int64"), [-1], None, True)
    if floating:  # NaN goes to the end
        row = _core.where(nan, _core.full_like(row, float("inf")), row)
    row = _core.sort(row, -1, False)[0]
    one = like(1, count)
    last = _core.maximum(_core.subtract(count, one), _core.full_like(count, 0))
    low, high = _core.floor_divide(last, like(2, count)), _core.floor_divide(count, like(2, count))
    high = _core.minimum(high, last)
    pair = _core.add(_core.take_along_axis(row, low, -1), _core.take_along_axis(row, high, -1))
    out = _core.scale(pair, 0.5) if floating else _core.cast(_core.scale(_core.cast(pair, "float64"), 0.5), x.dtype)
    if floating:
        out = _core.where(_core.equal(count, like(0, count)), _core.full_like(out, float("nan")), out)
    return reshaped(out, [1 if i in axes else n for i, n in enumerate(x.shape)] if keepdim else rest)


def _quantiles(x, q, axis, keepdim, skip_nan, what):
    if not isinstance(x, Tensor):
        raise TypeError(f"{what}: x must be a Tensor, got {type(x).__name__}")
    if is_number(q):
        q = [q]
    if not isinstance(q, (list, tuple)):
        raise TypeError(f"{what}: q must be a number, list or tuple, got {type(q).__name__}")
    if not q or any(not 0 <= v <= 1 for v in q):
        raise ValueError(f"{what}: q must hold numbers in [0, 1], got {q}")
    ndim, shape = len(x.shape), x.shape
    axes = list(range(ndim)) if axis is None else [one_axis(a, ndim, what) for a in _axes(axis)]
    kept = [1 if i in axes else n for i, n in enumerate(shape)]
    rest = [n for i, n in enumerate(shape) if i not in axes]
    row = _core.reshape(moveaxis(x, axes, list(range(-len(axes), 0))), rest + [-1]) if ndim else _core.reshape(x, [1])
    nan = _core.isnan(row)
    valid = _core.sum(_core.cast(_core.logical_not(nan), "float64"), [-1], None, True)
    ordered = _core.sort(_core.where(nan, _core.full_like(row, float("inf")), row), -1, False)[0]
    spoilt = _core.equal(valid, like(0, valid)) if skip_nan else _core.any(nan, [-1], True)
    out = []
    for part in q:
        place = _core.clip(_core.scale(valid, float(part), -float(part)), 0.0)
        low, high = _core.floor(place), _core.ceil(place)
        a = _core.take_along_axis(ordered, _core.cast(low, "int64"), -1)
        b = _core.take_along_axis(ordered, _core.cast(high, "int64"), -1)
        value = _core.lerp(_core.cast(a, "float64"), _core.cast(b, "float64"), _core.subtract(place, low))
        value = _core.where(spoilt, _core.full_like(value, float("nan")), value)
        out.append(reshaped(value, kept if keepdim else rest))
    return _core.stack(out, 0) if len(out) > 1 else out[0]


@asks("x:Tensor axis:int,list,None!ValueError")
def quantile(x, q, axis=None, keepdim=False):
    """The q-quantiles (0 ≤ q ≤ 1, a number or list) along axis in float64; NaN if there is one.

    >>> paddle.quantile(paddle.to_tensor([0.0, 1.0, 2.0]), 0.25).item()
    0.5
    """
    return _quantiles(x, q, axis, keepdim, False, "quantile")


@asks("x:Tensor axis:int,list,None!ValueError")
def nanquantile(x, q, axis=None, keepdim=False):
    """quantile of what is not NaN."""
    return _quantiles(x, q, axis, keepdim, True, "nanquantile")
