"""paddle.amp: automatic mixed precision. On a CPU, as in Paddle, float16 has no effect unless allow_on_cpu("float16")
was called; bfloat16 is honored, which Paddle leaves to GPUs."""
from .. import _core
from .auto_cast import allow_on_cpu, amp_decorate, amp_guard, auto_cast, decorate
from .grad_scaler import AmpScaler, GradScaler, OptimizerState

__all__ = ['auto_cast', 'GradScaler', 'decorate', 'is_float16_supported', 'is_bfloat16_supported']


def is_float16_supported(device=None):
    """True if the device trains in float16 at speed: no CPU does."""
    return str(device or _core.get_device()).split(":")[0] not in ("cpu", "Place(cpu)")


def is_bfloat16_supported(device=None):
    """True: the CPU's kernels take bfloat16."""
    return True
