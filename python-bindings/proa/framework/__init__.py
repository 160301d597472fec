"""paddle.framework: dtypes, parameters and their attributes, random state, saving and loading."""
from . import random, unique_name
from .mode import disable_static, enable_static, in_dynamic_mode, in_static_mode
from .dtype import dtype, finfo, get_default_dtype, iinfo, set_default_dtype
from .param_attr import ParamAttr, WeightNormParamAttr
from .parameter import Parameter, create_parameter
from .random import get_cuda_rng_state, get_rng_state, seed, set_cuda_rng_state, set_rng_state

_ELSEWHERE = {"load": ".io", "save": ".io", "no_grad": "..autograd", "grad": "..autograd", "core": "..fluid",
              "LayerHelper": "..fluid.layer_helper", "_current_expected_place": "..fluid.framework"}


def __getattr__(name):
    import importlib
    if name == "io":
        return importlib.import_module(".io", __name__)
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_ELSEWHERE[name], __name__), name)
    globals()[name] = value
    return value
