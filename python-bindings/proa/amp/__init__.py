"""paddle.amp: automatic mixed precision. On a CPU, as in Paddle, float16 has no effect unless allow_on_cpu("float16")
was called; bfloat16 is honored, which Paddle leaves to GPUs."""
import re

from .. import _core
from ..device import get_available_device
from .auto_cast import allow_on_cpu, amp_decorate, amp_guard, auto_cast, decorate
from .grad_scaler import AmpScaler, GradScaler, OptimizerState

__all__ = ['auto_cast', 'GradScaler', 'decorate', 'is_float16_supported', 'is_bfloat16_supported']


def __getattr__(name):
    if name not in ("accuracy_compare", "debugging"):
        raise AttributeError(f"module 'paddle.amp' has no attribute {name!r}")
    import importlib
    return importlib.import_module("." + name, __name__)


def _device(who, device):
    """A device's name without its number; as in Paddle, ValueError for what names none that there is."""
    if device is None:
        return _core.get_device().split(":")[0]
    name = device.lower() if isinstance(device, str) else re.sub(r"^Place\((.*)\)$", r"\1", str(device))
    if not isinstance(device, (str, _core.CPUPlace, _core.CUDAPlace)):
        raise ValueError(f"{who}: device must be a place or its name, got {type(device).__name__}")
    if name not in get_available_device() and f"{name}:0" not in get_available_device():
        raise ValueError(f"{who}: there is no device {name!r}, only {', '.join(get_available_device())}")
    return name.split(":")[0]


def is_float16_supported(device=None):
    """True if the device trains in float16 at speed: no CPU does."""
    return _device("is_float16_supported", device) != "cpu"


def is_bfloat16_supported(device=None):
    """True: the CPU's kernels take bfloat16."""
    _device("is_bfloat16_supported", device)
    return True
