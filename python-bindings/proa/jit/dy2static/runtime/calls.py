"""Calls: the user's own functions, methods and layers are converted when they are called, builtins that ask tensors
for their value have twins here, and everything else is called as it is."""
import builtins
import functools
import os
import sysconfig
import types

from .... import _core
from ....tensor.array import TensorArray, tensor_array_to_tensor
from . import effects, sequences
from .changes import before_change, before_next
from .numbers import Number, as_number, combined, dtype_for, in_dtype, kind, tensor
from .values import NUMBERS, Tensor, symbolic, truth

_SKIPPED = {"proa", "paddle", "numpy", "scipy", "builtins"}  # packages whose functions are called as they are
_CALL_BACK = ("nn.layer.container", "nn.layer.rnn", "nn.layer.transformer", "distributed.parallel")
_STDLIB = tuple(os.path.join(os.path.abspath(path), "") for path in
                {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_PACKAGE = __name__.partition(".")[0]
_warned = set()


def ignore(modules):
    """Functions of these modules are called as they are."""
    for module in modules:
        name = module if isinstance(module, str) else getattr(module, "__name__", None)
        if name:
            _SKIPPED.add(name)


# ---- builtins -----------------------------------------------------------------------------


def len_(value):
    """len(value)"""
    if isinstance(value, sequences.Sequence):
        return value.length()
    if isinstance(value, TensorArray):
        return sequences.Items(value).length()
    if symbolic(value):
        if not value.ndim:
            raise TypeError("len() of a 0-D tensor")
        if value.declared_shape[0] < 0:
            return as_number(_core.shape(value)[0])
    return len(value)


def _one(value):
    return _core.reshape(value, []) if value.ndim else value


def _has_one(args):
    """Whether the only argument is a variable that a Python number can stand for; of more elements, a cast is meant."""
    return len(args) == 1 and symbolic(args[0]) and (isinstance(args[0], Number) or
                                                     all(n in (1, -1) for n in args[0].declared_shape))


def _cast_all(args, plain, dtype):
    """plain(*args); a variable of several elements becomes one of that dtype."""
    return _core.cast(args[0], dtype) if len(args) == 1 and symbolic(args[0]) else plain(*args)


def int_(*args):
    """int(value)"""
    if _has_one(args):
        return as_number(_core.cast(_one(args[0]), _core.int64))
    return _cast_all(args, int, _core.int32)


def float_(*args):
    """float(value)"""
    if _has_one(args):
        return as_number(_core.cast(_one(args[0]), _core.float64))
    return _cast_all(args, float, _core.float32)


def bool_(*args):
    """bool(value)"""
    if _has_one(args):
        return as_number(truth(args[0]))
    return _cast_all(args, bool, _core.bool)


def isinstance_(value, types):
    """isinstance(value, types): a number that only the run knows is an int, a float or a bool."""
    if isinstance(value, Number):
        return issubclass(value.kind, types)
    return isinstance(value, types)


def type_(*args, **options):
    """type(…)"""
    return args[0].kind if len(args) == 1 and isinstance(args[0], Number) else type(*args, **options)


def _reduce(name, op):
    plain = getattr(builtins, name)

    def reduce(*args, **options):
        values = args[0] if len(args) == 1 else args
        if symbolic(values):
            values = sequences.as_sequence(values)
        if options or not isinstance(values, (list, tuple)) or not any(symbolic(one) for one in values) or \
                not all(isinstance(one, (Tensor, *NUMBERS)) for one in values):
            return plain(*args, **options)
        found = tensor(values[0])
        for one in values[1:]:
            found = combined(getattr(_core, op), found, one)
        return found

    reduce.__doc__ = f"{name}(…)"
    return reduce


def any_(values):
    """any(values)"""
    from .logic import test_or
    found = False
    for one in sequences.as_sequence(values) if symbolic(values) else values:
        if not symbolic(found) and found:
            return True
        found = test_or(found, lambda one=one: one)
    return found if symbolic(found) else bool(found)


def all_(values):
    """all(values)"""
    from .logic import test_and
    found = True
    for one in sequences.as_sequence(values) if symbolic(values) else values:
        if not symbolic(found) and not found:
            return False
        found = test_and(found, lambda one=one: one)
    return found if symbolic(found) else bool(found)


def print_(*values, **options):
    """print(…): with tensors of the program it prints in each run; inside a symbolic branch or loop, what they are
    while it is captured."""
    places = [i for i, value in enumerate(values) if symbolic(value)]
    if not places or not effects.possible():
        print(*values, **options)
        return

    def show(tensors):
        shown = list(values)
        for place, value in zip(places, tensors):
            shown[place] = value
        print(*shown, **options)
    effects.on_run(show, [values[i] for i in places])


def next_(iterator, *default):
    """next(iterator)"""
    before_next(iterator)
    return next(iterator, *default)


def map_(function, *parts):
    """map(function, …)"""
    return map(call(function), *parts)


def filter_(function, part):
    """filter(function, part)"""
    return filter(function and call(function), part)


def reduce_(function, *rest):
    """functools.reduce(function, …)"""
    return functools.reduce(call(function), *rest)


def _made_of(data):
    """Numbers, some of which only the run knows, in nested lists: as a tensor, and their kinds; or None."""
    if kind(data):
        return tensor(data), {kind(data)}
    parts = [_made_of(one) for one in data] if isinstance(data, (list, tuple)) and data else [None]
    if None in parts:
        return None
    kinds = set().union(*(one[1] for one in parts))
    return _core.stack([in_dtype(one[0], dtype_for(*kinds)) for one in parts]), kinds


def to_tensor_(data, dtype=None, place=None, stop_gradient=True):
    """paddle.to_tensor(…)"""
    made = _made_of(data) if symbolic(data) or isinstance(data, (list, tuple)) else None
    if made is None or not symbolic(made[0]):
        return _core.to_tensor(data, dtype, place, stop_gradient)
    value, kinds = made
    dtype = dtype or (_core.get_default_dtype() if float in kinds else value.dtype)
    return Tensor(_core.cast(value, dtype) if str(value.dtype) != str(dtype) else value)


_TWINS = {len: len_, int: int_, float: float_, bool: bool_, isinstance: isinstance_, type: type_, range: sequences.range_, zip: sequences.zip_,
          enumerate: sequences.enumerate_, reversed: sequences.reversed_, print: print_, any: any_, all: all_,
          map: map_, filter: filter_, next: next_, functools.reduce: reduce_,
          _core.to_tensor: to_tensor_, max: _reduce("max", "maximum"),
          min: _reduce("min", "minimum")}


def _elements(variable):
    """numpy() of a variable: what the array is used for is done by the program, on the variable."""
    return _core.reshape(variable, [1]) if variable.ndim == 0 and _core.set_to_1d() else variable


def concat_(x, axis=0, name=None):
    """paddle.concat, of a list that grew in a loop too"""
    if isinstance(x, TensorArray):
        return tensor_array_to_tensor(x, axis)[0]
    return _concat(x, axis, name)


def stack_(x, axis=0, name=None):
    """paddle.stack, of a list that grew in a loop too"""
    if isinstance(x, TensorArray):
        return tensor_array_to_tensor(x, axis, use_stack=True)[0]
    return _stack(x, axis, name)


_concat, _stack = _core.api("paddle")["concat"], _core.api("paddle")["stack"]
_OF_LISTS = {"concat": concat_, "stack": stack_}

# As Paddle calls it: what not_to_static leaves with a function.
CONVERSION_OPTIONS = "An attribute for a function that indicates conversion flags of the function in dynamic-to-static."


class ConversionOptions:
    """Options of a function's conversion."""

    def __init__(self, not_convert=False):
        self.not_convert = not_convert


_CONVERT = ConversionOptions()

# ---- what is converted --------------------------------------------------------------------


def is_users(function):
    """Should this Python function be converted? Not those of libraries that never call back."""
    module = function.__module__ or ""
    top = module.partition(".")[0]
    if top == _PACKAGE and not function.__code__.co_filename.startswith("<doctest"):
        return module.endswith(_CALL_BACK)
    if top != _PACKAGE and (top in _SKIPPED or module in _SKIPPED):
        return False
    file = os.path.abspath(function.__code__.co_filename)
    return not (file.startswith(_STDLIB) and f"{os.sep}site-packages{os.sep}" not in file and
                f"{os.sep}dist-packages{os.sep}" not in file)


def converted(function):
    """The converted twin of a function, or itself where there is nothing to convert or no source."""
    from ..errors import ConversionError
    from ..transform import convert_function, is_converted
    if is_converted(function) or getattr(function, CONVERSION_OPTIONS, _CONVERT).not_convert or not is_users(function):
        return function
    if function.__code__.co_flags & 0x2A0:  # generators and coroutines stay Python's
        return function
    try:
        return convert_function(function)
    except ConversionError as error:
        if function.__code__ not in _warned:
            _warned.add(function.__code__)
            import warnings
            warnings.warn(f"to_static: {function.__qualname__} is called as it is: {error}", stacklevel=2)
        return function


def call(function):
    """The callable that is called in place of function."""
    kind = type(function)
    if kind is types.FunctionType:
        return function.__dict__.get("_proa_converted") or converted(function)
    if kind is types.MethodType:
        inner = function.__func__
        if type(inner) is types.FunctionType:
            new = converted(inner)
            if new is not inner:
                return types.MethodType(new, function.__self__)
        if isinstance(function.__self__, Tensor) and _overwrites(getattr(function, "__name__", "")):
            return _overwriting(function)
        return function
    if kind is types.BuiltinFunctionType or isinstance(function, type):
        try:
            twin = _TWINS.get(function)
        except TypeError:
            twin = None
        if twin is not None:
            return twin
        owner = getattr(function, "__self__", None)
        if isinstance(owner, Tensor) and _overwrites(function.__name__):
            return _overwriting(function)
        if isinstance(owner, Tensor) and function.__name__ == "numpy" and owner.is_symbolic:
            return lambda: _elements(owner)
        if isinstance(owner, Tensor) and function.__name__ == "clear_gradient" and owner.is_symbolic:
            raise AssertionError("clear_gradient() is only there in dynamic mode: in a function that is converted call it on what the "
                                 "function returns")
        return function
    if kind is type(_concat) and function in (_concat, _stack):
        return _OF_LISTS[function.__name__]
    if isinstance(function, functools.partial):
        return functools.partial(call(function.func), *function.args, **function.keywords)
    if isinstance(function, _core.LayerBase):
        return _layer(function)
    static = getattr(function, "_proa_inline", None)
    if static is not None:
        return static()
    owner = getattr(function, "__self__", None)
    if isinstance(owner, Tensor) and _overwrites(getattr(function, "__name__", "")):
        return _overwriting(function)
    own = getattr(kind, "__call__", None)
    if type(own) is types.FunctionType and is_users(own):
        return types.MethodType(converted(own), function)
    return function


def _overwrites(name):
    return name == "set_value" or name.endswith("_") and not name.endswith("__")


def _overwriting(method):
    """A method that writes its tensor in place."""
    def run(*args, **options):
        owner = method.__self__
        before_change(owner)
        return getattr(owner, method.__name__)(*args, **options)
    return run


def _layer(layer):
    """A layer's call, with its forward converted."""
    own = type(layer).__call__
    if type(own) is types.FunctionType:
        return types.MethodType(converted(own), layer)
    forward = layer.forward
    new = call(forward)
    if new is forward:
        return layer
    if not layer._forward_pre_hooks and not layer._forward_post_hooks:
        return new

    def run(*inputs, **options):
        for hook in tuple(layer._forward_pre_hooks.values()):
            changed = call(hook)(layer, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = new(*inputs, **options)
        for hook in tuple(layer._forward_post_hooks.values()):
            changed = call(hook)(layer, inputs, outputs)
            if changed is not None:
                outputs = changed
        return outputs
    return run
