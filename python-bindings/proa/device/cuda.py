"""paddle.device.cuda: number, properties, memory statistics and synchronization of GPUs. Without a GPU the number is 0,
and naming one is a ValueError."""
from collections import namedtuple

from .. import _core

__all__ = ["device_count", "empty_cache", "synchronize", "get_device_name", "get_device_capability",
           "get_device_properties", "memory_allocated", "max_memory_allocated", "memory_reserved",
           "max_memory_reserved", "reset_max_memory_allocated"]

_Properties = namedtuple("_gpuDeviceProperties", "name major minor total_memory multi_processor_count")
_looked = False


def _gpus():
    """The names of the GPUs; the plug-in is looked for once."""
    global _looked
    if not _looked:
        _looked = True
        before = _core.get_device()
        try:
            _core.set_device("gpu:0")
            _core.set_device(before)
        except RuntimeError:
            pass  # there is none
    return [name for name in _core.device_names() if name.startswith("gpu:")]


def _name(asked, device):
    if device is None:
        device = _core.get_device() if _core.get_device().startswith("gpu:") else 0
    if isinstance(device, _core.Place):
        device = device._device_name()
    name = f"gpu:{device}" if isinstance(device, int) else "gpu:0" if device == "gpu" else device
    if name not in _gpus():
        raise ValueError(f"paddle.device.cuda.{asked}: there is no device {name!r} here; "
                         "ask paddle.device.cuda.device_count() first")
    return name


def device_count():
    """The number of GPUs that can be used."""
    return len(_gpus())


def empty_cache():
    """Gives cached GPU memory back."""
    for name in _gpus():
        _core.device_trim(name)


def synchronize(device=None):
    """Waits for a GPU's work."""
    name, before = _name("synchronize", device), _core.get_device()
    _core.set_device(name)
    try:
        _core.synchronize()
    finally:
        _core.set_device(before)


def get_device_name(device=None):
    """The name of a GPU."""
    return _core.device_describe(_name("get_device_name", device)).partition(",")[0]


def get_device_capability(device=None):
    """A GPU's compute capability: (major, minor)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_device_properties(device=None):
    """Name, compute capability, memory and number of multiprocessors of a GPU."""
    name = _name("get_device_properties", device)
    return _Properties(get_device_name(name), _core.device_property(name, "compute_major"),
                       _core.device_property(name, "compute_minor"), _core.device_memory(name)[3],
                       _core.device_property(name, "multiprocessors"))


def memory_allocated(device=None):
    """Bytes of a GPU that tensors hold."""
    return _core.device_memory(_name("memory_allocated", device))[0]


def max_memory_allocated(device=None):
    """The most bytes that tensors have held."""
    return _core.device_memory(_name("max_memory_allocated", device))[1]


def memory_reserved(device=None):
    """Bytes of a GPU that are held by tensors or kept for the next ones."""
    live, _, cached, _ = _core.device_memory(_name("memory_reserved", device))
    return live + cached


def max_memory_reserved(device=None):
    """As memory_reserved: what is kept is given back only by empty_cache."""
    name = _name("max_memory_reserved", device)
    return max(memory_reserved(name), max_memory_allocated(name))


def reset_max_memory_allocated(device=None):
    """max_memory_allocated starts from what is held now."""
    _core.device_memory(_name("reset_max_memory_allocated", device), True)
