"""paddle.device.cuda: number, properties, memory statistics and synchronization of GPUs. Without a GPU the number is 0,
and naming one is a ValueError."""
import contextlib
from collections import namedtuple

from .. import _core
from ..utils.deprecated import deprecated
from .streams import Event as _Event, Stream as _Stream, current_stream as _current_stream, stream_guard as _stream_guard

__all__ = ["Event", "Stream", "current_stream", "device_count", "empty_cache", "stream_guard", "synchronize", "get_device_name", "get_device_capability",
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


def _number(asked, device):
    """A GPU's place; RuntimeError where there are no GPUs."""
    if not isinstance(device, (int, _core.CUDAPlace, type(None))):
        raise ValueError(f"paddle.device.cuda.{asked}: device type must be int or paddle.CUDAPlace, got {type(device).__name__}")
    if not _gpus():
        raise RuntimeError(f"(Unavailable) paddle.device.cuda.{asked}: there is no GPU here")
    if isinstance(device, int):
        return _core.CUDAPlace(device)
    return device or _core.CUDAPlace(int(_name(asked, None).partition(":")[2]))


class Stream(_Stream):
    """A stream of a GPU, by its number or place; None: the current one."""

    def __init__(self, device=None, priority=2, stream_base=None):
        super().__init__(_number("Stream", device), priority, stream_base)

    @property
    def place(self):
        """The GPU."""
        return self.device


class Event(_Event):
    """An event of the current GPU."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        super().__init__(_number("Event", None), enable_timing, blocking, interprocess)


@deprecated(since="2.5.0", update_to="paddle.device.current_stream", level=1)
def current_stream(device=None):
    """The current stream of a GPU, by its number or place; None: the current GPU."""
    return _current_stream(_number("current_stream", device))


@deprecated(since="2.5.0", update_to="paddle.device.stream_guard", level=1)
@contextlib.contextmanager
def stream_guard(stream):
    """Context in which a stream of a GPU is the current one; None changes nothing."""
    if stream is not None and not isinstance(stream, _Stream):
        raise TypeError(f"paddle.device.cuda.stream_guard: stream type should be paddle.device.cuda.Stream, got {type(stream).__name__}")
    _number("stream_guard", None)
    with _stream_guard(stream):
        yield
