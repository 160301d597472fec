"""save_state_dict: each process writes its pieces, one of them what pieces there are."""
import os

from ... import _core
from ...framework.io import save
from ..communication import barrier
from ..group import get_rank
from ..objects import all_gather_object
from .metadata import LocalTensorIndex, LocalTensorMetadata, Metadata
from .pieces import checked, piece_of, write_metadata


def _number(path, several, group):
    """The first number under which no process has a file of metadata yet."""
    taken = [int(name.split(".")[0]) for name in os.listdir(path) if name.endswith(".metadata") and name.split(".")[0].isdigit()]
    taken += [int(name.split(".")[0].split("_")[1]) for name in os.listdir(path) if name.endswith(".distcp")]
    found = [max(taken, default=-1)]
    if several:
        found = []
        all_gather_object(found, max(taken, default=-1), group)
    return max(found) + 1


def _agree(keys, group):
    found = []
    all_gather_object(found, keys, group)
    for rank, other in enumerate(found):
        if other != found[0]:
            raise ValueError(f"save_state_dict: processes have different tensors: process 0 of the group {found[0]}, process {rank} {other}")


def save_state_dict(state_dict, path, process_group=None, coordinator_rank=0):
    """Writes tensors, on a mesh or not, into a folder, as Paddle does: each process the file R_N.distcp with its pieces (of equal ones
    only the first process), coordinator_rank N.metadata. All processes call it; the folder is one that all see, or each one's own.

    >>> import tempfile
    >>> import proa as paddle
    >>> import proa.distributed as dist
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dist.save_state_dict({"w": paddle.ones([2])}, folder)
    ...     held = {"w": paddle.zeros([2])}
    ...     dist.load_state_dict(held, folder)
    >>> held["w"].tolist()
    [1.0, 1.0]
    """
    several = checked("save_state_dict", state_dict, process_group)
    os.makedirs(path, exist_ok=True)
    if several:
        barrier(process_group)
        _agree(list(state_dict), process_group)
    number = _number(path, several, process_group)
    name = f"{get_rank()}_{number}.distcp"
    recording = _core.set_recording(False)
    try:
        pieces = {key: piece_of(value) for key, value in state_dict.items()}
    finally:
        _core.set_recording(recording)
    mine = [[key, list(p[0]), list(p[1])] for key, p in pieces.items() if p is not None and (0 not in p[1] or not any(p[0]))]
    found = [[name, mine]]
    if several:
        found = []
        all_gather_object(found, [name, mine], process_group)
    metadata, kept = _described(found), {}
    for key, piece in pieces.items():
        if piece is not None and metadata.storage_metadata.get(LocalTensorIndex(key, piece[0])) == name:
            kept[key] = piece[2]
    save(kept, os.path.join(path, name))
    if several:
        barrier(process_group)  # the metadata comes last: where it is, all pieces are
    if get_rank() == coordinator_rank:
        write_metadata(metadata, os.path.join(path, f"{number}.metadata"))
    if several:
        barrier(process_group)


def _described(found):
    """The metadata of all processes' pieces; of equal ones the first is kept."""
    pieces, files = {}, {}
    for name, mine in found:
        for key, offset, shape in mine:
            index = LocalTensorIndex(key, tuple(offset))
            if index not in files:
                files[index] = name
                pieces.setdefault(key, []).append(LocalTensorMetadata(tuple(offset), tuple(shape)))
    return Metadata(pieces, files)
