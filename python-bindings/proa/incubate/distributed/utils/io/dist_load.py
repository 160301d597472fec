"""load: a file of save, into the memory of a device."""
import re

from .....framework.io import load as _load


def load(path, **configs):
    """paddle.load; place="cpu" or "gpu:N" says on which device the tensors are to be, where the job has several processes."""
    from .....device import get_device, set_device
    from .....distributed import get_world_size
    place = configs.pop("place", "cpu")
    if get_world_size() < 2:
        return _load(path, **configs)
    if not isinstance(place, str) or not re.fullmatch(r"cpu|gpu:\d+", place):
        raise ValueError(f"load: place must be 'cpu' or 'gpu:N', got {place!r}")
    before = get_device()
    set_device(place)
    try:
        return _load(path, **configs)
    finally:
        set_device(before)


__all__ = ["load"]
