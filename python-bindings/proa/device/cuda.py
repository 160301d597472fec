"""paddle.device.cuda: what a script may ask before it uses a GPU. This build has none: counting says 0, and
asking for one is a ValueError."""

__all__ = ["device_count", "empty_cache", "synchronize", "get_device_name", "get_device_capability",
           "get_device_properties", "memory_allocated", "max_memory_allocated", "memory_reserved",
           "max_memory_reserved"]


def _none(asked):
    raise ValueError(f"paddle.device.cuda.{asked}: this build of Proa has no CUDA; "
                     "ask paddle.device.cuda.device_count() first")


def device_count():
    """The number of GPUs that can be used."""
    return 0


def empty_cache():
    """Gives cached GPU memory back; there is none."""


def synchronize(device=None):
    _none("synchronize")


def get_device_name(device=None):
    _none("get_device_name")


def get_device_capability(device=None):
    _none("get_device_capability")


def get_device_properties(device=None):
    _none("get_device_properties")


def memory_allocated(device=None):
    _none("memory_allocated")


def max_memory_allocated(device=None):
    _none("max_memory_allocated")


def memory_reserved(device=None):
    _none("memory_reserved")


def max_memory_reserved(device=None):
    _none("max_memory_reserved")
