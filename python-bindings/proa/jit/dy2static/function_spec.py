"""paddle.jit.dy2static.function_spec: a function's parameters beside the InputSpecs that are given for them."""
from ...static.input import InputSpec
from ..signature import Signature, spec_of
from .runtime import trees

__all__ = ["FunctionSpec"]


class FunctionSpec:
    """Names and defaults of a function's parameters, and how a call's arguments are laid out among them."""

    def __init__(self, function, input_spec=None):
        self._dygraph_function = function
        if input_spec is not None and not isinstance(input_spec, (list, tuple)):
            raise TypeError(f"The type(input_spec) should be one of (tuple, list), but received {type(input_spec).__name__}.")
        self._input_spec = None if input_spec is None else tuple(input_spec)
        self._flat = []
        trees.flatten(self._input_spec or (), self._flat)
        for one in self._flat:
            if not isinstance(one, InputSpec):
                raise ValueError(f"The type(elem) from input_spec should be `InputSpec`, but received {type(one).__name__}.")
        parameters = Signature(function, hasattr(function, "__self__")).parameters
        self._names = [one.name for one in parameters]
        self._defaults = {one.name: one.default for one in parameters if one.default is not one.empty}

    @property
    def dygraph_function(self):
        return self._dygraph_function

    @property
    def args_name(self):
        return self._names

    @property
    def input_spec(self):
        return self._input_spec

    @property
    def flat_input_spec(self):
        return self._flat

    @property
    def code(self):
        """The function's source."""
        import inspect
        return inspect.getsource(self._dygraph_function)

    def unified_args_and_kwargs(self, args, kwargs):
        """(arguments by position with defaults, keyword arguments that are no parameters)."""
        name = self._dygraph_function.__name__
        if len(args) > len(self._names):
            raise ValueError(f"{name} takes {len(self._names)} arguments, but {len(args)} were given")
        found, rest = list(args), dict(kwargs)
        for parameter in self._names[len(args):]:
            if parameter in rest:
                found.append(rest.pop(parameter))
            elif parameter in self._defaults:
                found.append(self._defaults[parameter])
            else:
                raise ValueError(f"`{name}()` requires `{parameter}` arguments, but not found in input `args`: {list(args)} "
                                 f"and `kwargs`: {kwargs}.")
        return tuple(found), rest

    def args_to_input_spec(self, args, kwargs):
        """Arguments with InputSpecs in the place of tensors: those that were given, else those of the tensors."""
        if self._input_spec is None:
            return _specs(args), _specs(kwargs)
        if kwargs:
            raise ValueError(f"{self._dygraph_function.__name__} got unexpected keyword arguments {sorted(kwargs)}: they cannot "
                             "be given when `input_spec` is specified.")
        if len(args) < len(self._input_spec):
            raise ValueError(f"Requires len(args) >= len(input_spec), but received len(args):{len(args)} < "
                             f"len(input_spec): {len(self._input_spec)}")
        return [*self._input_spec, *_specs(args[len(self._input_spec):])], {}


def _specs(values):
    leaves = []
    structure = trees.flatten(values, leaves)
    return trees.build(structure, iter([_spec(one) for one in leaves]))


def _spec(value):
    found = spec_of(value, getattr(value, "name", None) if not isinstance(value, InputSpec) else None)
    return value if found is None else found
