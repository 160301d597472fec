"""fluid.layers.device: get_places, the list of this machine's CPU or GPU places."""
from ...static.places import cpu_places, cuda_places

__all__ = []


def get_places(device_count=None, device_type=None):
    """Places of device_type ("CPU" or "CUDA"; default: CPU), device_count of them; 0 or None: all."""
    kind = (device_type or "CPU").upper()
    if kind not in ("CPU", "CUDA"):
        raise ValueError(f"get_places: device_type must be 'CPU' or 'CUDA', got {device_type!r}")
    return cpu_places(device_count or None) if kind == "CPU" else cuda_places()[:device_count or None]
