"""nonzero, where, sort, bucketize and top_p_sampling."""
from .. import _core
from .._asks import ask, asks, need_kernel
from .._errors import need_attribute, of_kind
from ._tools import FLOATING, Tensor, dtype_name, is_number, need_variable, overwrite

__all__ = ["bucketize", "nonzero", "searchsorted", "sort", "top_p_sampling", "where", "where_"]


@asks("static:x.shape x~i2,i4,i8,bf,f2,f4,f8,b")
def nonzero(x, as_tuple=False):
    """The indices of x's non-zero elements: a matrix with one a row, or with as_tuple a column for each axis.

    >>> paddle.nonzero(paddle.to_tensor([0, 5, 6])).tolist()
    [[1], [2]]
    """
    need_kernel("nonzero", "b,i2,i4,i8,f4,f8", x=x)
    try:
        out = _core.nonzero(x)
    except Exception:
        need_attribute("nonzero", "shape", x=x)
        raise
    if not as_tuple:
        return out
    ndim = len(x.shape)
    return (out,) if ndim == 1 else tuple(_core.slice(out, [1], [i], [i + 1]) for i in range(ndim))


def _branch(value):
    if not is_number(value):
        return value
    kind = "bool" if isinstance(value, bool) else "int64" if hasattr(value, "__index__") else "float64"
    return _core.full([1], value, "complex128" if isinstance(value, complex) else kind)


def where(condition, x=None, y=None, name=None):
    """x where condition is True, else y (Tensors or numbers); with condition alone, where it is True.

    >>> x = paddle.to_tensor([1.0, -2.0])
    >>> paddle.where(x > 0, x, -x).tolist()
    [1.0, 2.0]
    """
    for what, given in (("x", x), ("y", y)):
        if isinstance(given, (str, bytes)):
            raise TypeError(f"where: {what} must be a Tensor or a number, got {type(given).__name__}")
    if x is None and y is None:
        return nonzero(condition, True)
    if x is None or y is None:
        raise ValueError("where: x and y must be given both, or neither")
    x, y = _branch(x), _branch(y)
    if x.dtype != y.dtype:
        kinds = dtype_name(x.dtype), dtype_name(y.dtype)
        if not all(k in FLOATING for k in kinds):
            error = ValueError(f"where: x and y must have one dtype, got {kinds[0]} and {kinds[1]}")
            ask("eager:x,y>>i4,i8,f4,f8", "where", error, x=x, y=y)
            raise error
        wide = "float64" if "float64" in kinds else "float32"
        x, y = _core.cast(x, wide), _core.cast(y, wide)
    return _core.where(_condition(condition, x, y), x, y)


def _condition(given, x, y):
    """The condition as bools. As in Paddle, eager calls that broadcast take numbers, which x's dtype holds: 0 is False."""
    plain = not isinstance(given, Tensor) or dtype_name(given.dtype) == "bool"
    if plain or _core.is_capturing() or given.shape == x.shape == y.shape:
        return given
    return _core.cast(_core.cast(given, x.dtype), "bool")


def where_(condition, x=None, y=None, name=None):
    """In-place form of where: x takes the result."""
    if _core.is_capturing():  # as all functions in place
        return where(condition, x, y)
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        raise ValueError("where_: x and y must both be Tensors")
    return overwrite(x, _core.where(condition, x, y), "where_")


@asks("static:x.dtype")
def sort(x, axis=-1, descending=False, name=None):
    """x's values in rising (or falling) order along axis.

    >>> paddle.sort(paddle.to_tensor([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    need_kernel("sort", "i4,i8,f4,f8", x=x)
    if axis is None and not _core.is_capturing():
        raise of_kind("sort: axis must be an int, got NoneType")
    return _core.sort(x, axis, descending)[0]


@asks("eager:sorted_sequence.dtype=f4,f8,i4,i8!NotFound sorted_sequence~f4,f8,i4,i8 values~f4,f8,i4,i8")
def searchsorted(sorted_sequence, values, out_int32=False, right=False, name=None):
    """For each value the first place in the last axis of sorted_sequence where it could stand (with right, the last one). A 1-D
    sequence serves all values; otherwise leading dims agree.

    >>> paddle.searchsorted(paddle.to_tensor([1, 3, 5]), paddle.to_tensor([[3, 6]])).tolist()
    [[1, 3]]
    """
    need_kernel("searchsorted", "i4,i8,f4,f8", sorted_sequence=sorted_sequence)
    if isinstance(values, Tensor) and isinstance(sorted_sequence, Tensor) and values.dtype != sorted_sequence.dtype:
        sorted_sequence, values = _comparable(sorted_sequence, values)
    return _core.searchsorted(sorted_sequence, values, out_int32, right)


@asks("sorted_sequence~f4,f8,i4,i8 x~f4,f8,i4,i8 eager:sorted_sequence.dtype=f4,f8,i4,i8!NotFound")
def bucketize(x, sorted_sequence, out_int32=False, right=False, name=None):
    """Indices of the intervals between the rising values of sorted_sequence that the elements of x are in."""
    need_variable(sorted_sequence, "bucketize: sorted_sequence")
    if len(sorted_sequence.shape) != 1:
        raise ValueError(f"bucketize: sorted_sequence must have one axis, got {len(sorted_sequence.shape)}")
    if sorted_sequence.dtype != x.dtype:
        sorted_sequence, x = _comparable(sorted_sequence, x)
    return _core.searchsorted(sorted_sequence, x, out_int32, right)


def _comparable(a, b):
    """a and b in the dtype in which C compares their numbers; as they are if one has none of Paddle's four dtypes."""
    kinds = {dtype_name(a.dtype), dtype_name(b.dtype)}
    if not kinds <= {"int32", "int64", "float32", "float64"}:
        return a, b
    wide = next((kind for kind in ("float64", "float32") if kind in kinds), "int64")
    return _core.cast(a, wide), _core.cast(b, wide)


@asks("eager:x:Tensor!InvalidArgument eager:ps:Tensor!InvalidArgument")
def top_p_sampling(x, ps, threshold=None, seed=None, name=None):
    """(value, index), each [N, 1], of one entry a row of the probabilities x [N, C]: drawn by its probability among the likeliest
    that together reach ps [N]. Entries below threshold [N] are left out, but for the likeliest.

    >>> [int(one) for one in paddle.tensor.top_p_sampling(paddle.to_tensor([[0.1, 0.9]]), paddle.to_tensor([0.5]))]
    [0, 1]
    """
    if len(x.shape) != 2 or list(ps.shape) not in ([x.shape[0]], [x.shape[0], 1]):
        raise ValueError(f"(InvalidArgument) top_p_sampling: x must be [N, C] and ps [N], got shapes {x.shape} and {ps.shape}")
    wide = _core.cast(x, "float64" if dtype_name(x.dtype) == "float64" else "float32")
    values, ids = _core.sort(wide, 1, True)
    if threshold is not None:
        values = values * _core.cast(values >= _core.reshape(_core.cast(threshold, values.dtype), [-1, 1]), values.dtype)
    reached = _core.cumsum(values, 1)
    draw = _core.uniform([x.shape[0], 1], values.dtype, 0.0, 1.0, 0 if seed in (None, -1) else seed)
    draw = draw * _core.reshape(_core.cast(ps, values.dtype), [-1, 1])
    chosen = _core.take_along_axis(ids, _core.argmax(_core.cast(reached > draw, "int64"), 1, True), 1)
    return _core.take_along_axis(x, chosen, 1), chosen
