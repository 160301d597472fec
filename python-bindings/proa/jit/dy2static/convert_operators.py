"""paddle.jit.dy2static.convert_operators: Python's control flow as functions, under the names that Paddle gives them.
With plain values they do what the statement does; with a program's variables they build its operators."""
from ... import _core
from .runtime import calls, logic
from .runtime.values import Tensor, symbolic, truth

__all__ = ["cast_bool_if_necessary", "choose_shape_attr_or_api", "convert_assert", "convert_ifelse", "convert_len",
           "convert_logical_and", "convert_logical_not", "convert_logical_or", "convert_print", "convert_shape_compare",
           "convert_var_dtype", "convert_while_loop", "create_bool_as_type", "eval_if_exist_else_none"]

_OPERATORS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne", "is": "is_", "is not": "is_not",
              "in": "in_", "not in": "not_in"}


def _called(value):
    return value() if callable(value) and not isinstance(value, Tensor) else value


def convert_logical_and(x_func, y_func):
    """x_func() and y_func(); values may come instead of functions."""
    return logic.test_and(_called(x_func), lambda: _called(y_func))


def convert_logical_or(x_func, y_func):
    """x_func() or y_func(); values may come instead of functions."""
    return logic.test_or(_called(x_func), lambda: _called(y_func))


def convert_logical_not(x):
    """not x"""
    return _core.logical_not(truth(x)) if symbolic(x) else not x


def convert_ifelse(pred, true_fn, false_fn, true_args, false_args, return_vars):
    """true_fn(*true_args) where pred holds, else false_fn(*false_args)."""
    if not symbolic(pred):
        return true_fn(*true_args) if pred else false_fn(*false_args)
    from ...static.nn import cond
    return cond(truth(pred), lambda: true_fn(*true_args), lambda: false_fn(*false_args))


def convert_while_loop(cond, body, loop_vars):
    """loop_vars = body(*loop_vars) while cond(*loop_vars) holds."""
    from ...static.nn import while_loop
    if symbolic(cond(*loop_vars)):
        return while_loop(cond, body, loop_vars)
    while cond(*loop_vars):
        loop_vars = body(*loop_vars)
    return loop_vars


def convert_len(var):
    """len(var)"""
    return calls.len_(var)


def convert_print(*args):
    """print(*args)"""
    calls.print_(*args)


def convert_assert(cond, message=""):
    """assert cond, message"""
    logic.assert_(cond, lambda: message)


def convert_var_dtype(var, dtype):
    """var as 'bool', 'int' or 'float': a tensor keeps its shape, anything else is converted as Python does."""
    if not isinstance(var, Tensor):
        return {"bool": bool, "int": int, "float": float}[dtype](var)
    return _core.cast(var, {"bool": "bool", "int": "int32", "float": "float32"}[dtype])


def convert_shape_compare(left, *args):
    """left OP right OP right …: operators as strings, operands as values or functions; none is called in vain."""
    rest = []
    for i in range(0, len(args), 2):
        rest += _OPERATORS[args[i]], lambda value=args[i + 1]: _called(value)
    result = None
    for i in range(0, len(rest), 2):  # an operator and its right side
        if result is not None and not symbolic(result) and not result:
            return result
        right = rest[i + 1]()
        here = logic.compare(left, rest[i], lambda: right)
        if symbolic(here) or symbolic(result):
            whole = _core.any if args[i] == "!=" else _core.all
            here = whole(here) if symbolic(here) and here.ndim else here
        result = here if result is None else logic.test_and(result, lambda: here)
        left = right
    return result


def choose_shape_attr_or_api(attr_shape, api_shape, idx=None):
    """attr_shape, or its dim idx, where all of it is known; else the same of api_shape, which the run computes."""
    if api_shape is None:
        return attr_shape if idx is None else attr_shape[idx]
    if not isinstance(attr_shape, (list, tuple)):
        if attr_shape >= 0:
            return attr_shape
        return api_shape if idx is None else api_shape[idx]
    unknown = any(n < 0 for n in attr_shape) if idx is None else attr_shape[idx] < 0
    chosen = api_shape if unknown else attr_shape
    return chosen if idx is None else chosen[idx]


def eval_if_exist_else_none(name, local_symbol_table):
    """The value of a name, or of an expression of names, where the table has them; None where it does not."""
    try:
        return eval(name, local_symbol_table)
    except Exception:  # whatever the expression meets, it has no value then
        return None


def cast_bool_if_necessary(var):
    """var as bool."""
    return var if var.dtype == _core.bool else _core.cast(var, "bool")


def create_bool_as_type(x, value=True):
    """A constant bool: a tensor beside a program's variable, else a plain one."""
    return _core.full([1], value, "bool") if symbolic(x) else value
