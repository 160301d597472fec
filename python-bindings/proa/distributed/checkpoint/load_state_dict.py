"""load_state_dict: fills tensors on any mesh from the pieces of a checkpoint."""
import os

from ... import _core
from ...framework.io import load
from ..communication import barrier
from ..group import get_rank
from ..objects import all_gather_object
from .pieces import checked, piece_of, read_metadata


def _newest(path):
    """The metadata that was written last."""
    if not os.path.isdir(path):
        raise ValueError(f"load_state_dict: there is no folder {path}")
    numbers = [int(name.split(".")[0]) for name in os.listdir(path) if name.endswith(".metadata") and name.split(".")[0].isdigit()]
    return read_metadata(os.path.join(path, f"{max(numbers)}.metadata")) if numbers else None


def _shared_metadata(path, several, group, coordinator):
    """The metadata: of this process's folder or, where that has none, the coordinator's."""
    own = _newest(path)
    if several:
        plain = None
        if get_rank() == coordinator and own is not None:
            plain = [[[key, list(at), name] for (key, at), name in own[0].items()],
                     [[key, [[list(at), list(shape)] for at, shape in of]] for key, of in own[1].items()]]
        found = []
        all_gather_object(found, plain, group)
        plain = next((p for p in found if p is not None), None)
        if plain is not None:
            return {(k, tuple(o)): f for k, o, f in plain[0]}, {k: [(tuple(o), tuple(s)) for o, s in ms] for k, ms in plain[1]}
    if own is None:
        raise ValueError(f"load_state_dict: {path} has no metadata of a checkpoint (N.metadata)")
    return own


def _overlap(offset, shape, other_offset, other_shape):
    """The elements that two pieces have in common: [begin, end) of each axis in the tensor; None if there are none."""
    found = [(max(a, b), min(a + n, b + m)) for a, n, b, m in zip(offset, shape, other_offset, other_shape)]
    return found if all(begin < end for begin, end in found) else None


class _Files:
    """Checkpoint files of this process's folder, read when they are needed."""

    def __init__(self, path):
        self.path, self.read = path, {}

    def has(self, name):
        return os.path.exists(os.path.join(self.path, name))

    def piece(self, name, key):
        """A piece as an array."""
        if name not in self.read:
            self.read[name] = load(os.path.join(self.path, name), return_numpy=True)
        if key not in self.read[name]:
            raise ValueError(f"load_state_dict: {os.path.join(self.path, name)} lacks {key!r}, which its metadata names")
        return self.read[name][key]


def _plan(wanted, files_of, pieces_of):
    """For each tensor its pieces that are needed: (key, file, offset of the piece, common elements)."""
    plan = []
    for key, (offset, shape, _) in wanted.items():
        if key not in pieces_of:
            raise ValueError(f"load_state_dict: the checkpoint has no {key!r}; it has {sorted(pieces_of)[:10]}")
        covered = 0
        for at, size in pieces_of[key]:
            if len(at) != len(offset):
                raise ValueError(f"load_state_dict: {key!r} has {len(at)} axes in the checkpoint, {len(offset)} here")
            common = _overlap(offset, shape, at, size)
            if common is not None:
                covered += _count(common)
                plan.append((key, files_of[key, at], at, common))
        if covered != _count([(0, n) for n in shape]):
            raise ValueError(f"load_state_dict: the checkpoint has {covered} of the {_count([(0, n) for n in shape])} elements of {key!r} "
                             f"from {offset} on, shape {shape}; its shape differs, or pieces are missing")
    return plan


def _count(ranges):
    n = 1
    for begin, end in ranges:
        n *= end - begin
    return n


def _sent(plan, files, group):
    """Pieces of files that are in other processes' folders alone: {(file, key): array}."""
    missing = sorted({(name, key) for key, name, _, _ in plan if not files.has(name)})
    asked = []
    all_gather_object(asked, [list(m) for m in missing], group)
    asked = sorted({tuple(m) for of in asked for m in of})
    if not asked:
        return {}
    given, found = [], []
    all_gather_object(given, [[name, key, files.piece(name, key)] for name, key in asked if files.has(name)], group)
    for of in given:
        found += of
    return {(name, key): array for name, key, array in found}


def load_state_dict(state_dict, path, process_group=None, coordinator_rank=0):
    """Overwrites the tensors by the checkpoint's, whatever mesh and placements they had there. All processes call it; files that are
    not in a process's folder are read by one that has them, and sent."""
    several = checked("load_state_dict", state_dict, process_group)
    if several:
        barrier(process_group)
    files_of, pieces_of = _shared_metadata(path, several, process_group, coordinator_rank)
    recording = _core.set_recording(False)
    try:
        wanted = {key: piece_of(value) for key, value in state_dict.items()}
        wanted = {key: piece for key, piece in wanted.items() if piece is not None}
        files = _Files(path)
        plan = _plan(wanted, files_of, pieces_of)
        came = _sent(plan, files, process_group) if several else {}
        _fill(state_dict, wanted, plan, files, came)
    finally:
        _core.set_recording(recording)


def _fill(state_dict, wanted, plan, files, came):
    import numpy as np
    held = {}
    for key, name, at, common in plan:
        offset, shape, _ = wanted[key]
        if (name, key) not in came and not files.has(name):
            raise ValueError(f"load_state_dict: no process has the file {name}, in which {key!r} is")
        source = np.asarray(came[name, key] if (name, key) in came else files.piece(name, key))
        if key not in held:
            held[key] = np.empty(shape, source.dtype)
        to = tuple(slice(b - o, e - o) for (b, e), o in zip(common, offset))
        held[key][to] = source[tuple(slice(b - a, e - a) for (b, e), a in zip(common, at))]
    for key, array in held.items():
        local = wanted[key][2]
        value = _core.to_tensor(array)
        value = value if value.dtype == local.dtype else _core.cast(value, local.dtype)
        local.set_value(value)
        _settle(state_dict[key], local)


def _settle(tensor, local):
    """A Partial was made whole to be filled: it gets terms of that."""
    own = getattr(tensor, "_local", tensor)
    if own is not local:
        from ..auto_parallel.dist_tensor import DistTensor, make
        from ..auto_parallel.placement_type import Replicate
        whole = [Replicate() if p.is_partial() else p for p in tensor._placements]
        own.set_value(make(DistTensor, local, tensor._mesh, whole, tensor.shape, tensor.dtype)._placed(tensor._placements)._local_value())


