"""paddle.device.xpu: XPUs that a plug-in has brought."""
from .. import _core
from .streams import _Queue

__all__ = ["synchronize"]


def synchronize(device=None):
    """Waits for an XPU's work; RuntimeError where there is none."""
    number = device if isinstance(device, int) else 0 if device is None else getattr(device, "get_device_id", int)()
    place = _core.XPUPlace(number)
    if place._device_name() not in _core.device_names():
        raise RuntimeError(f"(Unavailable) paddle.device.xpu.synchronize: there is no device {place._device_name()} here")
    _Queue(place).synchronize()
