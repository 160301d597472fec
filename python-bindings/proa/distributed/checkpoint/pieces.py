"""Pieces of tensors in checkpoints: which ones this process has, and the file of metadata. Metadata is Paddle's pickle of three
classes; nothing else in it is read."""
import io
import os
import pickle

from ... import _core
from ..group import get_world_size, init_parallel_env, is_initialized
from .metadata import LocalTensorIndex, LocalTensorMetadata, Metadata

_CLASSES = {cls.__name__: cls for cls in (LocalTensorIndex, LocalTensorMetadata, Metadata)}
_MODULE = "paddle.distributed.checkpoint.metadata"


class _Writer(pickle._Pickler):  # the one in Python, whose globals may be named
    def save_global(self, obj, name=None):
        if _CLASSES.get(getattr(obj, "__name__", None)) is obj:
            self.write(pickle.GLOBAL + f"{_MODULE}\n{obj.__name__}\n".encode())
            self.memoize(obj)
        else:
            super().save_global(obj, name)


class _Reader(pickle.Unpickler):
    def find_class(self, module, name):
        if module.endswith(".distributed.checkpoint.metadata") and name in _CLASSES:
            return _CLASSES[name]
        raise ValueError(f"the metadata of a checkpoint names {module}.{name}, which is not read")


def write_metadata(metadata, path):
    """Writes it at once, or not at all."""
    held = io.BytesIO()
    _Writer(held, 2).dump(metadata)
    with open(path + ".part", "wb") as f:
        f.write(held.getvalue())
    os.replace(path + ".part", path)


def read_metadata(path):
    """Of a file of metadata ({(tensor, offset): file}, {tensor: [(offset, shape)]}); ValueError where it is something else."""
    try:
        with open(path, "rb") as f:
            found = _Reader(f).load()
        files = {(_of(str, i.tensor_key), _numbers(i.global_offset)): _name(f) for i, f in found.storage_metadata.items()}
        pieces = {_of(str, key): [(_numbers(m.global_offset), _numbers(m.local_shape)) for m in of]
                  for key, of in found.state_dict_metadata.items()}
    except OSError:
        raise
    except Exception as e:  # whatever a malformed pickle leads to
        raise ValueError(f"load_state_dict: {path} is no metadata of a checkpoint ({e})") from None
    unknown = [(key, at) for key, of in pieces.items() for at, _ in of if (key, at) not in files]
    if unknown:
        raise ValueError(f"load_state_dict: {path} names no file of {unknown[0]}")
    return files, pieces


def _of(kind, value):
    if type(value) is not kind:
        raise ValueError(f"expected a {kind.__name__}, got {type(value).__name__}")
    return value


def _numbers(values):
    numbers = tuple(_of(int, n) for n in values)
    if any(n < 0 for n in numbers):
        raise ValueError(f"a piece at {numbers}")
    return numbers


def _name(name):
    if os.path.basename(_of(str, name)) != name or not name:
        raise ValueError(f"a file {name!r}")
    return name


def checked(who, state_dict, process_group):
    """Checks a state; joins the job if nobody did. Returns whether several processes take part."""
    if not isinstance(state_dict, dict):
        raise TypeError(f"{who}: state_dict must be a dict of Tensors, got {type(state_dict).__name__}")
    for key, value in state_dict.items():
        if not isinstance(value, _core.Tensor):
            raise TypeError(f"{who}: state_dict must hold Tensors, got {type(value).__name__} under {key!r}")
    several = get_world_size() > 1
    if several and process_group is None and not is_initialized():
        init_parallel_env()
    return several


def piece_of(tensor):
    """(offset, shape, this process's part) of a tensor; None where it has none."""
    from ..auto_parallel.dispatch import is_dist
    from ..auto_parallel.placement_type import Replicate
    from ..auto_parallel.redistribute import bounds
    if not is_dist(tensor):
        return (0,) * tensor.ndim, tuple(tensor.shape), tensor
    if tensor._local is None:
        return None
    whole = [Replicate() if p.is_partial() else p for p in tensor._placements]
    local, offset = tensor._placed(whole)._local_value(), [0] * tensor.ndim
    for p, n, at in zip(whole, tensor._mesh.shape, tensor._mesh.coordinates()):
        if p.is_shard():
            offset[p.get_dim()] = bounds(tensor.shape[p.get_dim()], n, at)[0]
    return tuple(offset), tuple(local.shape), local


