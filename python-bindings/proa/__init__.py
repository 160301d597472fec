"""Proa for Python: the namespace that scripts know as `paddle`. `import proa as paddle` is the one line that
changes. Importing loads no module from outside Proa; subpackages are loaded when they are first named."""
import sys

from . import _asks, _core, _errors
from ._core import (CPUPlace, CUDAPinnedPlace, CUDAPlace, CustomPlace, NPUPlace, Tensor, XPUPlace,
                    dtype)
from ._core import (bfloat16, bool, complex64, complex128, float16, float32, float64, int8, int16,
                    int32, int64, uint8)
from .tensor import *
from .tensor import to_string as _to_string
from .autograd.guards import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from .framework import (ParamAttr, create_parameter, disable_static, enable_static, finfo, get_cuda_rng_state,
                        get_default_dtype, get_rng_state, iinfo, in_dynamic_mode, seed, set_cuda_rng_state,
                        set_default_dtype, set_rng_state)

from .version import commit as __git_commit__, full_version as __version__

# name -> the module that has it: loaded at first use
_LAZY = {name: f".{name}" for name in """
amp audio autograd callbacks common_ops_import compat cost_model dataset device distributed distribution fft fluid framework geometric hapi hub incubate
inference io jit linalg metric nn onnx optimizer profiler quantization reader regularizer signal sparse static sysconfig
tensor text utils version vision
""".split()}
_LAZY.update({"Model": ".hapi:Model", "summary": ".hapi:summary", "flops": ".hapi:flops", "grad": ".autograd:grad",
              "LazyGuard": ".nn.initializer.lazy_init:LazyGuard",
              "save": ".framework.io:save", "load": ".framework.io:load", "DataParallel": ".distributed:DataParallel",
              "set_device": ".device:set_device", "get_device": ".device:get_device",
              "get_cudnn_version": ".device:get_cudnn_version", "set_flags": ".utils.flags:set_flags",
              "get_flags": ".utils.flags:get_flags",
              "check_shape": ".fluid.data_feeder:check_shape",
              "batch": ".batch:batch", "install_as_paddle": "._alias:install_as_paddle",
              "_C_ops": "._C_ops", "_legacy_C_ops": "._legacy_C_ops", "base": ".fluid",
              "core": ".fluid:core",
              "show_config": ".utils.config:show_config",
              "disable_signal_handler": ".utils.crash:disable_signal_handler"})
_LAZY.update({f"is_compiled_with_{kind}": f".device:is_compiled_with_{kind}"
              for kind in "cinn cuda custom_device distribute ipu npu rocm xpu".split()})


def __getattr__(name):
    if name == "paddle":  # Paddle names itself, in annotations such as `x: paddle.paddle`
        return sys.modules[__name__]
    where = _LAZY.get(name)
    if where is None:
        raise AttributeError(f"module 'paddle' has no attribute {name!r}")
    import importlib
    module, _, attribute = where.partition(":")
    value = importlib.import_module(module, __name__)
    value = getattr(value, attribute) if attribute else value
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_LAZY))


Tensor.__repr__ = Tensor.__str__ = _to_string.tensor_to_string
_errors.install()
