"""fluid.framework: Program, Variable and the switches between modes and default programs, under their fluid names."""
import contextlib
import functools

from .. import _core
from .._core import CPUPlace, CUDAPinnedPlace, CUDAPlace
from ..device import (is_compiled_with_cinn, is_compiled_with_cuda, is_compiled_with_distribute, is_compiled_with_rocm,
                      is_compiled_with_xpu)
from ..framework import mode, unique_name
from ..framework.dtype import dtype_name, to_dtype
from ..framework.mode import in_dynamic_mode
from ..framework.parameter import Parameter
from ..static.graph import IrGraph
from ..static.places import cpu_places, cuda_places, device_guard
from ..static.program import (Block, Operator, Program, _switch, default_main_program,
                              default_startup_program, name_scope, program_guard)
from ..static.variable import Variable, data as _data
from ..utils.flags import get_flags, set_flags
from .op import OpProtoHolder, get_all_op_protos
from . import core

__all__ = ["Program", "Variable", "cpu_places", "cuda_pinned_places", "cuda_places", "default_main_program", "default_startup_program",
           "device_guard", "get_flags", "in_dygraph_mode", "name_scope", "program_guard", "set_flags"]

ParamBase = EagerParamBase = Parameter
in_dygraph_mode = _non_static_mode = _in_legacy_dygraph = in_dynamic_or_pir_mode = in_dynamic_mode
GRAD_VAR_SUFFIX = "@GRAD"
EMPTY_VAR_NAME = "@EMPTY@"


def in_pir_mode():
    """Whether programs are in Paddle's later form (PIR), which there is not here: False."""
    return False


use_pir_api = in_pir_mode


def data(name, shape, dtype="float32", lod_level=0):
    """A variable that Executor.run is fed, of exactly this shape; None or -1: any size."""
    return _data(name, shape, dtype, lod_level)


def cuda_pinned_places(device_count=None):
    """device_count pinned places (as many as cpu_places); an AssertionError where there is no GPU."""
    if not core.is_compiled_with_cuda():
        raise AssertionError("cuda_pinned_places: Not compiled with CUDA; use cpu_places")
    return [CUDAPinnedPlace() for _ in cpu_places(device_count)]


def grad_var_name(var_name):
    """The name of a variable's gradient."""
    return var_name + GRAD_VAR_SUFFIX


def convert_np_dtype_to_dtype_(np_dtype):
    """A NumPy dtype, or its name, as a dtype."""
    return to_dtype(np_dtype)


def dtype_is_floating(dtype):
    return dtype_name(to_dtype(dtype)) in ("float16", "bfloat16", "float32", "float64")


def dygraph_not_support(func):
    """The function, which asserts that a program is built."""
    @functools.wraps(func)
    def inner(*args, **kwargs):
        if in_dynamic_mode():
            raise AssertionError(f"We don't support {func.__name__} in dynamic graph mode")
        return func(*args, **kwargs)
    return inner


def dygraph_only(func):
    """The function, which asserts that operators run at once."""
    @functools.wraps(func)
    def inner(*args, **kwargs):
        if not in_dynamic_mode():
            raise AssertionError(f"We only support '{func.__name__}()' in dynamic graph mode, please call "
                                 "'paddle.disable_static()' to enter dynamic graph mode.")
        return func(*args, **kwargs)
    return inner


def switch_main_program(program):
    """Makes this the default main program; returns the one before."""
    return _opened(_switch(program, default_startup_program())[0], program)


def switch_startup_program(program):
    """Makes this the default startup program; returns the one before."""
    return _switch(default_main_program(), program)[1]


def _opened(before, program):
    if mode.building():
        _core.program_open(program._core)
    return before


def _current_expected_place():
    from ..device import get_device
    return CPUPlace() if get_device() == "cpu" else CUDAPlace(0)


class _Tracer:
    """Runs operators at once."""

    _enable_program_desc_tracing = False

    def trace_op(self, type, inputs, outputs, attrs, stop_gradient=False, inplace_map=None):
        """Runs an operator of {slot: [Tensor]}."""
        from .op import run_eagerly
        lists = [{k: list(v) if isinstance(v, (list, tuple)) else [v] for k, v in slots.items()}
                 for slots in (inputs, outputs)]
        run_eagerly(type, *lists, attrs)

    _has_grad = property(lambda self: _core.is_recording(),
                         lambda self, value: _core.set_recording(value))


_tracer = _Tracer()


def _dygraph_tracer():
    return _tracer if in_dynamic_mode() else None


@contextlib.contextmanager
def _dygraph_guard(tracer):
    """Operators inside run at once; with None they build the default program."""
    if tracer is None:
        with mode.opened(default_main_program()._core):
            yield
    else:
        with mode.eager():
            yield


@contextlib.contextmanager
def _dygraph_place_guard(place):
    yield


def _get_var(name, program=None):
    """The variable of that name in the program's global block."""
    return (program or default_main_program()).global_block().var(name)


def _set_expected_place(place):
    from ..static.places import set_device
    set_device(place)


def require_version(min_version, max_version=None):
    """Raises unless the version that is mirrored lies in the range."""
    from ..utils import require_version as require
    return require(min_version, max_version)
