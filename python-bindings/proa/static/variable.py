"""Variable: the handle on a program's variable that data, create_parameter and create_global_var return."""

from .. import _core
from .._errors import lacks
from ..framework import mode, unique_name
from ..framework.dtype import dtype_name, to_dtype
from ..framework.param_attr import ParamAttr
from ..framework.parameter import Parameter
from .scope import global_scope

__all__ = ["Variable", "create_global_var", "create_parameter", "data"]


class _VariableType(type):
    def __instancecheck__(cls, value):
        return isinstance(value, _core.Tensor) and (value.is_symbolic or mode.in_dynamic_mode())

    def __getattr__(cls, name):
        return getattr(_core.Tensor, name)


class Variable(metaclass=_VariableType):
    """A program's variable: a Tensor that stands for a value of each run; as in Paddle, every tensor in dynamic mode. Only
    for isinstance."""

    def __init__(self, block, type=None, name=None, shape=None, dtype=None, lod_level=None, capacity=None, persistable=None,
                 error_clip=None, stop_gradient=False, is_data=False, need_check_feed=False, belong_to_optimizer=False, **kwargs):
        if not hasattr(block, "program"):
            raise AttributeError(lacks("Variable", "program", "block", block, "a program's block"))
        raise TypeError("static.Variable: static.data, static.create_parameter and operators make variables")


def _dims(shape):
    if isinstance(shape, int):
        shape = [shape]
    return [-1 if n is None else int(n) for n in shape]


def _same(var, shape, dtype):
    return var.dtype == dtype and var.ndim == len(shape) and \
        all(a == b or a < 0 or b < 0 for a, b in zip(var.declared_shape, shape))


def data(name, shape, dtype=None, lod_level=0):
    """A variable that Executor.run is fed; None or -1 in shape: any size. lod_level: how many levels of sequences its
    rows form; what is fed must carry their lengths then.

    >>> import proa as paddle
    >>> paddle.enable_static()
    >>> paddle.static.data("image", [None, 1, 8, 8], "float32").shape
    (-1, 1, 8, 8)
    >>> paddle.disable_static()
    """
    if not isinstance(name, (str, bytes)):
        raise TypeError(f"static.data: name must be a string, got {type(name).__name__}")
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"static.data: shape must be a list or tuple, got {type(shape).__name__}")
    from .program import default_main_program
    name = name.decode() if isinstance(name, bytes) else name
    dims, dtype = _dims(shape), _core.get_default_dtype() if dtype is None else to_dtype(dtype)
    program = default_main_program()
    found = program._core.find(name)
    if found is not None:
        if not _same(found, dims, dtype):
            raise ValueError(f"static.data: there is a variable {name!r} already, of shape {found.declared_shape} and dtype "
                             f"{dtype_name(found.dtype)}")
        return found
    made = program._core.data(name, dims, dtype)
    if lod_level:
        program._core.data_lod(made, lod_level)
    return made


def _initialized(name, shape, dtype, make):
    """The variable's twin in the startup program, with the operators that give it its first value."""
    from .program import default_startup_program
    startup = default_startup_program()._core
    if startup.find(name) is not None:
        return
    twin = startup.persistable(name, shape, dtype)
    with mode.opened(startup):
        make(twin)


def make_variable_parameter(name, shape, dtype, attr, make):
    """The parameter `name` of the default main program, initialized by the startup program."""
    from .program import default_main_program
    program = default_main_program()
    found = program._parameters.get(name)
    if found is not None:
        if found.declared_shape != list(shape):
            raise ValueError(f"the parameter {name!r} has shape {found.declared_shape}, but is asked for with {list(shape)}")
        return found
    var = program._core.persistable(name, shape, dtype)
    param = Parameter._share(var)
    param._describe(name=name, trainable=attr.trainable, optimize_attr={"learning_rate": attr.learning_rate},
                    regularizer=attr.regularizer, do_model_average=attr.do_model_average, need_clip=attr.need_clip)
    program._add_parameter(param)
    _initialized(name, shape, dtype, make)
    return param


def make_persistable(name, shape, dtype, value):
    """A persistable variable of the default main program that the startup program sets to one value."""
    from .program import default_main_program
    program = default_main_program()._core
    var = program.find(name)
    if var is None:
        var = program.persistable(name, shape, dtype)
    var.persistable = True
    _initialized(name, shape, dtype, lambda twin: _core.assign_to(_core.full(shape, value, dtype), twin))
    return var


def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    """A parameter that belongs to no layer."""
    from ..framework.parameter import create_parameter as create
    return create(list(shape), dtype, name, ParamAttr(name=name) if attr is None else attr, is_bias,
                  default_initializer)


def create_global_var(shape, value, dtype, persistable=False, force_cpu=False, name=None):
    """A variable of one value, set by the startup program.

    >>> import proa as paddle
    >>> paddle.enable_static()
    >>> paddle.static.create_global_var([2, 3], 1.0, "float32", persistable=True, name="ones").name
    'ones'
    >>> paddle.disable_static()
    """
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"create_global_var: shape must be a list or tuple, got {type(shape).__name__}")
    if isinstance(value, _core.Tensor) and value.is_symbolic:
        raise TypeError("create_global_var: value must be a number, got a variable of the program")
    if not mode.by_name():
        made = _core.full(list(shape), value, to_dtype(dtype))
        made.name, made.persistable = name or unique_name.generate("global_var"), persistable
        return made
    return make_persistable(name or unique_name.generate("global_var"), _dims(shape), to_dtype(dtype), value)


# ---- what a variable can say, beside being a Tensor ---------------------------------------------------------------

def program_of(var):
    """The Program that a variable belongs to."""
    from .program import default_main_program, living
    for program in (default_main_program(), *living()):
        if _core.variable_name(program._core, var) is not None:
            return program
    raise ValueError("the variable belongs to no program that is alive")


def true_name(program, var):
    """The variable's name in its program; var may be a name already."""
    if isinstance(var, str):
        return var
    if not isinstance(var, _core.Tensor):
        name = getattr(var, "name", None)
        if isinstance(name, str):
            return name
        raise TypeError(f"expected a variable or its name, got {type(var).__name__}")
    return _core.variable_name(program, var) or var.name


def get_value(self, scope=None):
    """The value of a persistable variable in a scope (default: the global one)."""
    if not self.is_symbolic:
        return self
    from .scope import ScopeTensor
    found = (scope or global_scope()).find_var(self.name)
    if found is None or found.value is None:
        raise ValueError(f"the scope has no value of {self.name!r}: run the startup program first")
    return ScopeTensor(owner=found)


def keep_in_scope(var):
    """Variable.persistable = True: what a run feeds it, or makes of it, stays in the scope."""
    from .program import default_main_program, living
    for program in (default_main_program(), *living()):
        name = _core.variable_name(program._core, var)
        if name is not None:
            if name not in program._persistables():
                program._kept.add(name)
            if not var.stop_gradient:
                program._fed_wanting.add(name)
            return


def set_in_scope(var, value, scope=None):
    """Variable.set_value: the value that the program's next run finds."""
    with mode.eager():
        if not isinstance(value, _core.Tensor):
            value = _core.to_tensor(getattr(value, "numpy", lambda: value)())
        if list(value.shape) != var.declared_shape and var.declared_shape != [-1]:
            raise ValueError(f"set_value: {var.name} has shape {var.declared_shape}, the value {list(value.shape)}")
        if value.dtype != var.dtype:
            value = _core.cast(value, var.dtype)
        (scope or global_scope()).var(var.name).assign(value.clone())


def text_of(var, persistable=None):
    """A variable as Paddle prints it."""
    persistable = var.persistable if persistable is None else persistable
    kind = "var" if not isinstance(var, Parameter) else "trainable param" if var.trainable else "param"
    return (f"{'persist ' if persistable else ''}{kind} {var.name} : LOD_TENSOR.shape{_tuple(var.declared_shape)}"
            f".dtype({dtype_name(var.dtype)}).stop_gradient({var.stop_gradient})")


def _tuple(shape):
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _text(self, throw_on_error=False, with_details=False):
    return text_of(self)


def block_of(var):
    """The block that a variable belongs to; of a tensor outside all programs, as in Paddle, the default program's."""
    try:
        return program_of(var).global_block()
    except ValueError:
        if var.is_symbolic:
            raise
        from .program import default_main_program
        return default_main_program().global_block()


def _lod_level(self):
    return len(_core.variable_lod(self, program_of(self)._core)) if self.is_symbolic else 0


def _op(self):
    """The operator that makes the variable, or None."""
    for op in program_of(self).global_block().ops:
        if self.name in op.output_arg_names:
            return op
    return None


def _of_programs(var, name):
    """Eager tensors do not have what only variables have."""
    if not var.is_symbolic:
        raise AttributeError(f"'Tensor' object has no attribute {name!r}")


class _OfPrograms:
    """A method of variables that eager tensors do not have."""

    def __init__(self, function):
        self._function = function

    def __get__(self, var, kind=None):
        if var is None:
            return self._function
        _of_programs(var, self._function.__name__)
        return self._function.__get__(var, kind)


def _array(var, who):
    """The variable, which must be a tensor array."""
    from ..tensor.array import TensorArray
    if not isinstance(var, TensorArray):
        raise TypeError(f"{who}: only a Variable with VarType.LOD_TENSOR_ARRAY has it, got a {type(var).__name__}")
    return var


def append(self, var):
    """Adds a variable to a tensor array."""
    array = _array(self, "append")
    if not isinstance(var, _core.Tensor):
        raise TypeError(f"append: var must be a Variable, got {type(var).__name__}")
    array.append(var)


def pop(self, *args):
    """Takes an item out of a tensor array: the last, or that at the place given."""
    return _array(self, "pop").pop(*args)


def _attributes(var):
    """What _set_attr has said about the variable."""
    return program_of(var)._variable_attrs.setdefault(var.name, {})


def attr(self, name):
    """What _set_attr has set; RuntimeError if it has not."""
    found = _attributes(self)
    if name not in found:
        raise RuntimeError(f"(NotFound) Variable.attr: {self.name} has no attribute {name!r}; it has {', '.join(found) or 'none'}")
    return found[name]


def _set_attr(self, name, val):
    _attributes(self)[name] = val


def _attr_names(self):
    """The attributes that _set_attr has set."""
    _of_programs(self, "attr_names")
    return list(_attributes(self))


def _is_parameter(self):
    """Whether the variable is a Parameter."""
    _of_programs(self, "is_parameter")
    return isinstance(self, Parameter)


for _function in (append, pop, attr, _set_attr):
    setattr(_core.Tensor, _function.__name__, _OfPrograms(_function))
for _name, _function in {"attr_names": _attr_names, "is_parameter": _is_parameter}.items():
    setattr(_core.Tensor, _name, property(_function))
for _name, _value in {"block": property(block_of), "op": property(_op), "get_value": get_value, "to_string": _text,
                      "lod_level": property(_lod_level), "grad_name": property(lambda self: self.name + "@GRAD")}.items():
    setattr(_core.Tensor, _name, _value)
