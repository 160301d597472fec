"""paddle.static: programs built call by call, and the executor that runs them."""
from . import amp, nn
from .backward import append_backward, gradients
from .compiler import BuildStrategy, CompiledProgram, ExecutionStrategy, ParallelExecutor
from .ema import ExponentialMovingAverage
from .executor import Executor
from .host import Print, py_func
from .input import InputSpec
from .io import (deserialize_persistables, deserialize_program, load, load_from_file, load_inference_model,
                 load_program_state, load_vars, normalize_program, save, save_inference_model, save_to_file,
                 save_vars, serialize_persistables, serialize_program, set_program_state)
from .metric import accuracy, auc, ctr_metric_bundle
from .places import cpu_places, cuda_places, device_guard, xpu_places
from .program import Program, default_main_program, default_startup_program, name_scope, program_guard
from .scope import Scope, global_scope, scope_guard
from .variable import Variable, create_global_var, create_parameter, data
from ..framework.param_attr import WeightNormParamAttr

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy", "Executor", "ExponentialMovingAverage", "InputSpec", "ParallelExecutor",
           "Print", "Program", "Scope", "Variable", "WeightNormParamAttr", "accuracy", "amp", "append_backward", "auc",
           "cpu_places", "create_global_var", "create_parameter", "ctr_metric_bundle", "cuda_places", "data", "default_main_program",
           "default_startup_program", "deserialize_persistables", "deserialize_program", "device_guard",
           "global_scope", "gradients", "load", "load_from_file", "load_inference_model", "load_program_state",
           "load_vars", "name_scope", "nn", "normalize_program", "program_guard", "py_func", "save",
           "save_inference_model", "save_to_file", "save_vars", "scope_guard", "serialize_persistables",
           "serialize_program", "set_program_state", "xpu_places"]


def __getattr__(name):
    if name != "quantization":
        raise AttributeError(f"module 'paddle.static' has no attribute {name!r}")
    import importlib
    return importlib.import_module(".quantization", __name__)
