"""Helpers of the tensor functions: argument conversion, writing in place, and in-place variants of compositions."""
import inspect
import operator
import types

from .. import _core
from .._asks import answer
from .._errors import of_kind
from ..framework.dtype import dtype_name
from ..framework.dims import alike, differ, is_empty, number, runs_number

Tensor = _core.Tensor
public = types.SimpleNamespace(**_core.api("paddle"))  # ops as Paddle's functions: most refuse operands of two floating dtypes

FLOATING = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGER = ("uint8", "int8", "int16", "int32", "int64")
END = 2 ** 31 - 1  # as the end of a slice: all that follows


def is_number(value):
    """A Python or NumPy scalar (a Tensor is none)."""
    if isinstance(value, (bool, int, float, complex)):
        return True
    return type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0


def need_tensor(value, what):
    if not isinstance(value, Tensor):
        raise of_kind(f"{what} must be a Tensor, got {type(value).__name__}")
    return value


def need_one_floating(who, *operands):
    """The floating operands of functions that promote none have one dtype; autocast converts them."""
    dtypes = {t.dtype for t in operands if isinstance(t, Tensor) and dtype_name(t.dtype) in FLOATING}
    if len(dtypes) > 1 and not _core.is_autocasting():
        raise ValueError(f"(InvalidArgument) {who}: the operands are {' and '.join(map(dtype_name, dtypes))}; convert one with cast")


def need_variable(value, what):
    """While a program is built Paddle's Python looks first whether an argument is a variable: TypeError."""
    if not isinstance(value, Tensor) and _core.is_capturing():
        raise TypeError(f"{what} must be a Tensor, got {type(value).__name__}")


def whole(value):
    """An int from what counts as one."""
    if not hasattr(type(value), "__index__"):
        raise of_kind(f"expected an int, got {type(value).__name__}")
    return value.__index__()


def whole_number(who, what, value, expected="an int"):
    """value as an int; a number that only the run knows is an error that says so."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{who}: {what} must be {expected}, got {type(value).__name__}")
    return operator.index(value)


def one_axis(axis, ndim, what):
    """axis counted from the front; a 0-D tensor has one axis to speak of, 0 or -1."""
    axis = whole(axis)
    rank = max(ndim, 1)
    if not -rank <= axis < rank:
        raise ValueError(f"{what}: axis must be in [{-rank}, {rank}), got {axis}")
    return axis + rank if axis < 0 else axis


def plain_ints(values):
    """A list of ints from an int, a Tensor, or a sequence of ints and one-element Tensors."""
    if isinstance(values, Tensor):
        values = values.tolist()
    if isinstance(values, (list, tuple)):
        return [int(v) if isinstance(v, Tensor) else whole(v) for v in values]
    if hasattr(values, "tolist"):
        values = values.tolist()
        return values if isinstance(values, list) else [values]
    return [whole(values)]


def bounds(values):
    """plain_ints; but the variables of a program stay, and numbers beside them become tensors, as programs want."""
    if isinstance(values, Tensor) and values.is_symbolic:
        return values
    if isinstance(values, (list, tuple)) and any(isinstance(v, Tensor) and v.is_symbolic for v in values):
        return [v if isinstance(v, Tensor) else _core.full([1], whole(v), _core.int64) for v in values]
    return plain_ints(values)


def like(value, x):
    """value as a Tensor: a number, the run's too, becomes a 0-D tensor of x's dtype."""
    if runs_number(value):
        return _core.cast(number(value), x.dtype)
    return value if isinstance(value, Tensor) else _core.full([], value, x.dtype)


def overwrite(x, y, what, keeps_shape=False):
    """Makes x hold y's value and history: the in-place form of an op that has none of its own."""
    if x.is_leaf and not x.stop_gradient and _core.is_recording():
        raise ValueError(f"(InvalidArgument) {what}: a leaf Tensor that wants a gradient cannot be changed in place; "
                         "use paddle.no_grad() or a copy")
    if y is x:
        return x
    if alike(y.shape, x.shape) and y.dtype == x.dtype:
        return _core.set_value_(x, y, axes=[], starts=[], ends=[])
    if keeps_shape and differ(y.shape, x.shape):
        raise ValueError(f"{what}: x has shape {x.shape}, the result {y.shape}; in place the two must be equal")
    return x._become(y)


_PUBLIC = _core.api("paddle")  # as users call them, with `name`


COMPARED = "eager:x.shape eager:y.shape eager:x<-y"  # what Paddle's functions of two tensors ask first in place


def late_program(x):
    """Whether x is a variable of a program whose blocks write variables from outside (static.nn.control_flow.While and its kin):
    there functions in place are operators that write x itself."""
    if not x.is_symbolic or _core.captures_function():
        return False
    from ..static.program import default_main_program
    return default_main_program()._late is not None


def need_elements(who, *tensors):
    """Refuses tensors without elements, of which Paddle reduces none."""
    for x in tensors:
        if isinstance(x, Tensor) and is_empty(x):
            raise ValueError(f"(InvalidArgument) {who}: tensors must have elements, got shape {x.shape}")


def need_few_dims(who, **tensors):
    """Refuses tensors of more dims than Paddle's slices and broadcasts have."""
    for what, x in tensors.items():
        if isinstance(x, Tensor) and x.ndim > 6:
            raise ValueError(f"(InvalidArgument) {who}: {what} must have at most 6 dims, got {x.ndim}; merge some with reshape")


def twin(fn, name, rules=None, of_one=False):
    """fn's in-place form: its first argument takes the result. rules: what else failed calls ask (_asks.py). of_one: a function of one
    tensor, whose result keeps the dtype or is bool."""
    if isinstance(fn, type(_core.relu)):  # an op: as the user calls it
        fn = _PUBLIC.get(name[:-1], fn)

    keeps_shape = bool(rules and "<-" in rules)

    def write(*args, **kwargs):
        if rules is COMPARED and isinstance(args[1] if len(args) > 1 else kwargs.get("y"), (int, float)) and not _core.is_capturing():
            raise of_kind(f"{name}: argument y: expected a Tensor, got a number")  # which fn may take
        key = None if args else _first_parameter(fn)
        x = args[0] if args else kwargs.get(key)
        if not isinstance(x, Tensor):
            fn(*args, **kwargs)  # says what is missing or wrong
            raise of_kind(f"{name}: argument {key or 'x'}: expected a Tensor, got {type(x).__name__}")
        if _core.is_recording() and not x.stop_gradient and not x.is_leaf:
            x = _core.assign(x)  # a gradient that needs the value must find the old one
            result = fn(x, *args[1:], **kwargs) if args else fn(**{**kwargs, key: x})
        else:
            result = fn(*args, **kwargs)
        if of_one and result.dtype not in (x.dtype, _core.bool) and not _core.is_capturing():
            raise ValueError(f"(InvalidArgument) {name}: x is {x.dtype}, and the result {result.dtype}; in place the two must be equal, "
                             f"use {name[:-1]}")
        return overwrite(args[0] if args else kwargs[key], result, name, keeps_shape and not _core.is_capturing())

    def ask_and_write(*args, **kwargs):
        try:
            return write(*args, **kwargs)
        except Exception as error:
            _refuse(rules, name, fn, args, kwargs, error)
            raise
    in_place = ask_and_write if rules else write
    in_place.__name__ = in_place.__qualname__ = name
    in_place.__doc__ = f"In-place form of {name[:-1]}: changes its first argument and returns it."
    in_place.__wrapped__ = fn  # for inspect.signature
    return in_place


def _first_parameter(fn):
    return next(iter(inspect.signature(fn).parameters))


def _refuse(rules, name, fn, args, kwargs, error):
    """Raises what the rules say of a call that failed with error and whose arguments fit fn, if that is anything."""
    try:
        given = inspect.signature(fn).bind(*args, **kwargs).arguments
    except TypeError:
        return
    try:
        answer(rules, name, given, error)
    except Exception as said:
        raise said from None
