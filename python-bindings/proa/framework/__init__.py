"""paddle.framework: dtypes, parameters and their attributes, random state, saving and loading."""
from . import random, unique_name
from .mode import disable_static, enable_static, in_dynamic_mode, in_static_mode
from .dtype import dtype, finfo, get_default_dtype, iinfo, set_default_dtype
from .param_attr import ParamAttr, WeightNormParamAttr
from .parameter import Parameter, create_parameter
from .random import get_cuda_rng_state, get_rng_state, seed, set_cuda_rng_state, set_rng_state

_ELSEWHERE = {"load": ".io", "save": ".io", "no_grad": "..autograd", "grad": "..autograd", "core": "..fluid",
              "LayerHelper": "..fluid.layer_helper", "CustomPlace": "..fluid", "XPUPlace": "..fluid", "to_variable": "..fluid.dygraph",
              "disable_signal_handler": "..utils.crash", "is_compiled_with_cuda": "..device"}
_ELSEWHERE.update(dict.fromkeys("""Block CPUPlace CUDAPinnedPlace CUDAPlace IrGraph OpProtoHolder Program _current_expected_place
_dygraph_tracer _set_expected_place convert_np_dtype_to_dtype_ dygraph_not_support dygraph_only get_flags in_dynamic_or_pir_mode
in_pir_mode set_flags switch_main_program switch_startup_program use_pir_api""".split(), "..fluid.framework"))


def __getattr__(name):
    import importlib
    if name == "io":
        return importlib.import_module(".io", __name__)
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_ELSEWHERE[name], __name__), name)
    globals()[name] = value
    return value
