"""paddle.jit.to_static, and the functions and class that exclude code from it or switch it off."""
import types
import warnings

from .. import _core
from .._errors import of_kind
from .dy2static.runtime import calls
from .dy2static.logging_utils import set_code_level, set_verbosity  # noqa: F401
from .static_function import StaticFunction, Switch, made


def to_static(function=None, input_spec=None, build_strategy=None, backend=None, full_graph=False, property=False,
              **kwargs):
    """Makes a program of a function, a method or a layer's forward; also a decorator, with or without arguments.

    input_spec: InputSpecs of the arguments, whose unknown dims (None, -1) one program serves. Conditions and loops on
    tensors become part of the program. A function that cannot be converted runs as plain Python, with a warning that
    says why (what its Python code did before the place that cannot be converted, it does twice in the first call);
    with full_graph=True it is an error.

    >>> import proa as paddle
    >>> @paddle.jit.to_static
    ... def relu_or_square(x):
    ...     if x.mean() > 0:
    ...         return x * x
    ...     return x.clip(min=0)
    >>> float(relu_or_square(paddle.full([2], 3.0)).sum())
    18.0
    """
    from ..static.compiler import BuildStrategy
    build_strategy = build_strategy or None
    if build_strategy is not None and not isinstance(build_strategy, BuildStrategy):
        raise TypeError("to_static: build_strategy must be a paddle.static.BuildStrategy, got "
                        f"{type(build_strategy).__name__}")
    if backend not in (None, "CINN"):
        raise ValueError(f"to_static: backend must be None or 'CINN', got {backend!r}")
    if property:
        raise ValueError("to_static: property=True, a value saved beside the program, is not supported")
    full_graph = bool(full_graph) and not kwargs.get("enable_fallback", False)

    def convert(what):
        from ..nn import Layer
        if isinstance(what, Layer):
            return _convert_layer(what, input_spec, build_strategy, full_graph)
        if isinstance(what, StaticFunction):
            if input_spec is None:
                return what
            return StaticFunction(what._function, input_spec, build_strategy, full_graph, what._instance, what._name)
        if isinstance(what, (staticmethod, classmethod)):
            return type(what)(convert(what.__func__))
        function = what
        if not isinstance(function, (types.FunctionType, types.MethodType)):
            inner = getattr(function, "__wrapped__", None)
            if not isinstance(inner, (types.FunctionType, types.MethodType)):
                raise TypeError("to_static: expected a function, a method or a Layer, got "
                                f"{type(function).__name__}")
            function = inner
        return StaticFunction(function, input_spec, build_strategy, full_graph)

    return convert if function is None else convert(function)


def _convert_layer(layer, input_spec, build_strategy, full_graph):
    forward = layer.forward
    if isinstance(forward, StaticFunction):
        warnings.warn(f"to_static: {type(layer).__name__}.forward is converted already")
        if input_spec is None:
            return layer
        forward = forward.dygraph_function
    made = StaticFunction(forward, input_spec, build_strategy, full_graph, name="forward")
    object.__setattr__(layer, "forward", made)
    return layer


def not_to_static(func=None):
    """Marks a function: converted code calls it as it is, without converting it.

    >>> import proa as paddle
    >>> @paddle.jit.not_to_static
    ... def helper(x):
    ...     return x + 1
    >>> float(paddle.jit.to_static(lambda x: helper(x))(paddle.zeros([])))
    1.0
    """
    def mark(function):
        try:
            setattr(getattr(function, "__func__", function), calls.CONVERSION_OPTIONS,
                    calls.ConversionOptions(not_convert=True))
        except AttributeError:
            warnings.warn(f"not_to_static: expected a function or a method, got {type(function).__name__}", stacklevel=3)
        return function
    return mark if func is None else mark(func)


def ignore_module(modules):
    """Functions of these modules are called as they are, without being converted."""
    if isinstance(modules, _core.Tensor):
        raise of_kind("ignore_module: modules must be a list of modules, got a Tensor")
    calls.ignore([modules] if isinstance(modules, (types.ModuleType, str)) else modules)


def enable_to_static(enable_to_static_bool):
    """False: converted functions run as they were written, until this is called with True."""
    _set_switch("enable_to_static", enable_to_static_bool)


def _set_switch(who, on):
    """As in Paddle, the kind is asked for while a program is built; eager code has what the value is worth."""
    if _core.is_capturing() and not isinstance(on, bool):
        raise TypeError(f"{who}: expected True or False, got {on!r}")
    Switch.on = on


class ProgramTranslator:
    """The one switchboard of conversion.

    >>> import proa as paddle
    >>> paddle.jit.ProgramTranslator().enable(True)
    """

    _one = None

    def __new__(cls, *args, **kwargs):
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    @classmethod
    def get_instance(cls):
        """The one there is."""
        return cls()

    @classmethod
    def reset(cls):
        """Everything as at the start."""
        Switch.on = True

    @property
    def enable_to_static(self):
        return Switch.on

    def enable(self, enable_to_static):
        """See paddle.jit.enable_to_static."""
        _set_switch("ProgramTranslator.enable", enable_to_static)

    @staticmethod
    def _static(function):
        if not callable(function):
            raise TypeError(f"ProgramTranslator: expected a function, got {type(function).__name__}")
        return function if isinstance(function, StaticFunction) else StaticFunction(function)

    def get_output(self, dygraph_func, *args, **kwargs):
        """The function's result, computed by its program."""
        if Switch.on:
            self._static(dygraph_func)._need_dynamic()
        return self._static(dygraph_func)(*args, **kwargs) if Switch.on else dygraph_func(*args, **kwargs)

    def get_func(self, dygraph_func):
        """The converted function: to be called while a program is built."""
        return self._static(dygraph_func)._inline() if Switch.on else dygraph_func

    def get_program(self, dygraph_func, *args, **kwargs):
        """(main program, startup program, inputs, outputs) of a call."""
        if not Switch.on:
            return dygraph_func(*args, **kwargs)
        concrete = self._static(dygraph_func).get_concrete_program(*args, **kwargs)
        return concrete.main_program, concrete.startup_program, concrete.inputs, concrete.outputs

    def get_code(self, dygraph_func):
        """The converted source of a function."""
        return self._static(dygraph_func).code

    def get_program_cache(self):
        """name -> programs by kind of call, of the functions that have any."""
        return {one.__qualname__: one.program_cache for one in list(made) if one.program_cache}
