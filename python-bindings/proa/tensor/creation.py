"""Tensors from nothing and from numbers: full, arange, eye, assign, … (zeros and the like are the op table's)."""
from .. import _core
from .._asks import ask, asks
from ..framework.dims import differ
from ._tools import FLOATING, Tensor, dtype_name, is_number, late_program, need_variable, plain_ints

_OF_THE_TABLE = ("empty", "full_like", "ones", "ones_like", "zeros", "zeros_like")

__all__ = ["arange", "assign", "clone", "create_parameter", "create_tensor", "diagflat", "empty_like", "eye", "full", "linspace",
           "logspace", "meshgrid", "polar", "to_tensor", "tril_indices", "triu_indices", *_OF_THE_TABLE]

to_tensor = _core.to_tensor
_table = _core.api("paddle")
globals().update((name, _table[name]) for name in _OF_THE_TABLE)


def empty_like(x, dtype=None, name=None):
    """A tensor with x's shape, and x's dtype unless another is given; its elements are 0. Eagerly, x may be an array."""
    if hasattr(x, "__array_interface__") and not _core.is_capturing():
        return _table["empty"](list(x.shape), x.dtype if dtype is None else dtype)
    return _table["empty_like"](x, dtype)


def _default(dtype):
    return _core.get_default_dtype() if dtype is None else dtype


def full(shape, fill_value, dtype=None, name=None):
    """A tensor of this shape whose elements are all fill_value (a number or a one-element Tensor).

    >>> paddle.full([2, 2], 7, 'int32').tolist()
    [[7, 7], [7, 7]]
    """
    if isinstance(fill_value, (str, bytes)):
        fill_value = float(fill_value)
    try:
        return _core.full(shape, fill_value, dtype)
    except Exception as error:
        ask("shape[i] static:shape.dtype=i4,i8 static:dtype? eager:fill_value?", "full", error, shape=shape, dtype=dtype,
            fill_value=fill_value)
        raise


def _is_integer(value):
    if isinstance(value, Tensor):
        return dtype_name(value.dtype) not in FLOATING
    return isinstance(value, int) or (is_number(value) and hasattr(value, "__index__"))


@asks("start:-complex end:-complex step:-complex eager:step:-bytes!ValueError")
def arange(start=0, end=None, step=1, dtype=None, name=None):
    """Values from start up to, not including, end; int64 if all three are integers, else the default dtype.

    >>> paddle.arange(1, 7, 2).tolist()
    [1, 3, 5]
    """
    if end is None:
        start, end = 0, start
    if all(isinstance(n, (int, float)) for n in (start, end, step)) and (end - start) * step < 0:
        raise ValueError(f"(InvalidArgument) arange: step {step} leads away from end: {start} to {end}")
    if dtype is None:
        whole = _is_integer(start) and _is_integer(end) and _is_integer(step)
        dtype = "int64" if whole else _core.get_default_dtype()
    start, end, step = (_core.cast(one, dtype) if isinstance(one, Tensor) and one.is_symbolic else one
                        for one in (start, end, step))  # Paddle's op takes all three in one dtype
    return _core.arange(start, end, step, dtype)


@asks("start:number,bool,Tensor stop:number,bool,Tensor")
def linspace(start, stop, num, dtype=None, name=None):
    """num values at equal distances from start to stop, both included.

    >>> paddle.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return _core.linspace(start, stop, num, _default(dtype))


def logspace(start, stop, num, base=10.0, dtype=None, name=None):
    """base to the powers linspace(start, stop, num)."""
    wide = "float64" if dtype_name(_default(dtype)) != "float32" else "float32"
    powers = _core.linspace(start, stop, num, wide)
    if not isinstance(base, Tensor):
        base = _core.full([], base, wide)
    return _core.cast(_core.elementwise_pow(_core.cast(base, wide), powers), _default(dtype))


@asks("static:num_rows:-Tensor!AssertionError")
def eye(num_rows, num_columns=None, dtype=None, name=None):
    """A matrix with ones on its diagonal.

    >>> paddle.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    for n, what in ((num_rows, "num_rows"), (num_columns, "num_columns")):
        if n is not None and (not hasattr(n, "__index__") or int(n) < 0):
            raise TypeError(f"eye: {what} must be a non-negative int, got {n!r}")
    rows = int(num_rows)
    return _core.eye(rows, rows if num_columns is None else int(num_columns), _default(dtype))


def meshgrid(*args, **kwargs):
    """N 1-D tensors as N grids, each of shape [len of the first, len of the second, …].

    >>> rows, columns = paddle.meshgrid(paddle.arange(2), paddle.arange(3))
    >>> columns.tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    kwargs.pop("name", None)
    if kwargs and args:
        raise TypeError(f"meshgrid: unexpected keyword arguments {sorted(kwargs)}")
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    try:
        return list(_core.meshgrid(list(args)))
    except Exception as error:
        ask("static:args[].dtype", "meshgrid", error, args=args)
        raise


@asks("static:x:Tensor static:offset:int x~f2,f4,f8,i4,i8")
def diagflat(x, offset=0, name=None):
    """A matrix with x's elements on the diagonal that lies offset above the main one."""
    need_variable(x, "diagflat: x")
    return _core.diag(x if len(x.shape) == 1 else _core.flatten(x), offset)


def _written(output, value):
    if late_program(output):
        from ..fluid.layers import assign as written
        return written(value, output)
    if output.is_symbolic and _core.is_declared(None, _core.variable_name(None, output)):
        return _core.assign_to(value, output)
    other = output.dtype != value.dtype or differ(output.shape, value.shape)
    if other and (output.is_symbolic or not value.is_symbolic):
        return output._take_over(_core.assign(value))  # as in Paddle, an output has what was there no more
    return _core.set_value_(output, value, axes=[], starts=[], ends=[])


@asks("eager:output:Tensor,None!InvalidArgument eager:x:-bytes!ValueError static:x:Tensor,array,list,tuple,number")
def assign(x, output=None):
    """A copy of x (Tensor, array, list or number); written into output if that is given."""
    if isinstance(x, Tensor):
        if output is None:
            return _core.assign(x)
        return output if output is x else _written(output, x)
    value = to_tensor([x] if is_number(x) else x)
    if dtype_name(value.dtype) == "float64":
        value = _core.cast(value, "float32")
    if output is None:
        return _core.assign(value) if _core.is_capturing() else value
    return _written(output, value)


def clone(x, name=None):
    """A copy of x that gradients flow through."""
    return x.clone()


def polar(abs, angle, name=None):
    """The complex tensor of this absolute value and angle."""
    for t, what in ((abs, "abs"), (angle, "angle")):
        need_variable(t, f"polar: {what}")
        if dtype_name(t.dtype) not in ("float32", "float64") and _core.is_capturing():
            raise TypeError(f"polar: {what} must be float32 or float64, got {dtype_name(t.dtype)}")
    return _core.complex(abs * _core.cos(angle), abs * _core.sin(angle))


_OF_INDICES = "dtype^ static:row:int static:col:int,None static:offset:int"


@asks(_OF_INDICES)
def tril_indices(row, col, offset=0, dtype="int64"):
    """Row and column indices, [2, n], of the lower triangle of a row × col matrix.

    >>> paddle.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return _core.tril_indices(row, row if col is None else col, offset, dtype)


@asks(_OF_INDICES)
def triu_indices(row, col=None, offset=0, dtype="int64"):
    """Row and column indices, [2, n], of the upper triangle of a row × col matrix."""
    return _core.triu_indices(row, row if col is None else col, offset, dtype)


@asks("static:shape:-Tensor static:shape:list,tuple,array dtype:dtype")
def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    """A Parameter outside any Layer."""
    from ..framework.parameter import ParamAttr, create_parameter as create
    ParamAttr._to_attr(attr)  # before the others
    shape = [int(n) for n in shape] if isinstance(shape, Tensor) else plain_ints(shape)
    return create(shape, dtype, name, attr, is_bias, default_initializer)


def create_tensor(dtype, name=None, persistable=False):
    """An empty tensor of this dtype, to be assigned to."""
    out = _core.full([0], 0, dtype)
    out.persistable = persistable
    if name is not None:
        out.name = name
    return out
