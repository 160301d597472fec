"""fluid.dygraph.base: switches between eager mode and building programs (guard), and no_grad, to_variable and
grad."""
import contextlib
import functools

import numpy

from ... import _core
from ...autograd import grad
from ...autograd.guards import no_grad as _no_grad
from ...framework import mode, unique_name
from ...framework.dtype import to_dtype
from ...framework.mode import in_dynamic_mode

__all__ = ["enabled", "grad", "guard", "no_grad", "to_variable"]

enabled = in_dynamic_mode
_grad_enabled = _core.is_recording


@contextlib.contextmanager
def guard(place=None):
    """Operations inside run at once. Names count from 0, and programs that are built inside are its own."""
    from ...static.program import Program, program_guard
    with program_guard(Program(), Program()), unique_name.guard(), mode.eager():
        yield


def no_grad(func=None):
    """Nothing inside is recorded: a context without arguments, a decorator of a function."""
    return _no_grad() if func is None else _no_grad()(func)


no_grad_ = no_grad


def to_variable(value, name=None, zero_copy=None, dtype=None):
    """A tensor of an array, a number, a tensor, or a list of numbers."""
    if mode.by_name():
        raise AssertionError("We only support to_variable in imperative mode, please use fluid.dygraph.guard() as context to "
                             "run it in imperative Mode")
    return _variable(value, name, zero_copy, dtype)


def _variable(value, name=None, zero_copy=None, dtype=None):
    """to_variable in whatever mode: converted code calls it, whose tensors may be constants of a program."""
    if isinstance(value, _core.Tensor):
        return value
    if not isinstance(value, (numpy.ndarray, numpy.generic, list, tuple, int, float, bool)):
        raise TypeError(f"The type of 'value' in fluid.dygraph.to_variable must be numpy.ndarray, Variable, list or tuple, "
                        f"but received {type(value)}.")
    made = _core.to_tensor(numpy.asarray(value), dtype=None if dtype is None else to_dtype(dtype))
    if name:
        made.name = name
    return made


to_variable._proa_converted = _variable


def switch_to_static_graph(func):
    """The function builds the default program, whatever mode is on."""
    @functools.wraps(func)
    def inner(*args, **kwargs):
        from ...static.program import default_main_program
        with mode.opened(default_main_program()._core):
            return func(*args, **kwargs)
    return inner


_switch_to_static_graph_ = switch_to_static_graph
