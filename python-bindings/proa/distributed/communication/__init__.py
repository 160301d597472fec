"""Collectives and send/recv between processes, which write their results into the tensors given. With sync_op=False
(use_calc_stream=False) they return a task at once; on a program's variables they add ops (recorded.py)."""
import warnings

from ... import _core
from .. import recorded
from ..group import group_of

(_ALL_REDUCE, _REDUCE, _REDUCE_SCATTER, _BROADCAST, _ALL_GATHER, _SCATTER, _ALL_TO_ALL, _SEND, _RECV, _BARRIER) = range(10)


class ReduceOp:
    """Reductions over the ranks' elements."""

    SUM, MAX, MIN, PROD, AVG = range(5)


class Task:
    """A message under way."""

    def __init__(self, task, finish=None):
        self._task, self._finish = task, finish

    def wait(self, timeout=None):
        """Returns True when it is done; what went wrong is raised."""
        _core.task_wait(self._task)
        if self._finish is not None:
            self._finish()
            self._finish = None
        return True

    synchronize = wait

    def is_completed(self):
        """Whether wait would return at once."""
        return _core.task_done(self._task)

    is_sync = False


def _sync(sync_op, use_calc_stream):
    return sync_op and use_calc_stream is not False


def _message(kind, group, tensor_in=None, out=None, op=0, peer=0, counts=(None, None), sync=True, finish=None):
    for tensor in (tensor_in, out):
        if tensor is not None and not isinstance(tensor, _core.Tensor):
            raise TypeError(f"paddle.distributed: expected a Tensor, got {type(tensor).__name__}")
    made = _core.communicate(kind, group._handle, tensor_in, out, op, peer, *counts, not sync)
    if not sync:
        return Task(made, finish)
    if finish is not None:
        finish()
    return None


def _outsider(group, who):
    """Non-members return at once."""
    if group.rank < 0:
        warnings.warn(f"{who}: this process is no member of group {group.id}: nothing is done")
    return group.rank < 0


def _peer(group, rank, who):
    if group.get_group_rank(rank) < 0:
        raise ValueError(f"{who}: rank {rank} is no member of the group of {group.ranks}")
    return rank


def _op(op, who):
    if not isinstance(op, int) or not 0 <= op <= 4:
        raise ValueError(f"{who}: op must be one of ReduceOp.SUM, MAX, MIN, PROD, AVG, got {op!r}")
    return op


def _joined(tensors, who):
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise RuntimeError(f"{who}: expected a list of tensors, one a rank, got {tensors!r}")
    return _core.concat([t.reshape([-1]) for t in tensors])


def _like(tensor, parts):
    return _core.full([parts * tensor.size], 0, dtype=tensor.dtype)


def _cut(flat, parts):
    """Equal parts of a 1-D tensor."""
    return _core.split(flat, [flat.size // parts] * parts, 0)


def _parts(flat, tensors):
    """Fills tensors with the equal parts of flat."""
    for part, tensor in zip(_cut(flat, len(tensors)), tensors):
        _fill(tensor, part)


def _fill(tensor, flat):
    from ... import no_grad
    with no_grad():
        tensor.copy_(flat.reshape(tensor.shape), True)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, sync_op=True, use_calc_stream=None):
    """The reduction of the ranks' tensors, in place on every rank."""
    group = group_of(group, "all_reduce")
    if _outsider(group, "all_reduce"):
        return None
    if recorded.wanted(tensor):
        return recorded.all_reduce(tensor, _op(op, "all_reduce"), group)
    return _message(_ALL_REDUCE, group, out=tensor, op=_op(op, "all_reduce"), sync=_sync(sync_op, use_calc_stream))


def reduce(tensor, dst, op=ReduceOp.SUM, group=None, sync_op=True, use_calc_stream=None):
    """The reduction in place on rank dst."""
    group = group_of(group, "reduce")
    if _outsider(group, "reduce"):
        return None
    if recorded.wanted(tensor):
        return recorded.reduce(tensor, _peer(group, dst, "reduce"), _op(op, "reduce"), group)
    return _message(_REDUCE, group, out=tensor, op=_op(op, "reduce"), peer=_peer(group, dst, "reduce"),
                    sync=_sync(sync_op, use_calc_stream))


def broadcast(tensor, src, group=None, sync_op=True, use_calc_stream=None):
    """Rank src's tensor, in place on every rank."""
    group = group_of(group, "broadcast")
    if _outsider(group, "broadcast"):
        return None
    if recorded.wanted(tensor):
        return recorded.broadcast(tensor, _peer(group, src, "broadcast"), group)
    return _message(_BROADCAST, group, out=tensor, peer=_peer(group, src, "broadcast"),
                    sync=_sync(sync_op, use_calc_stream))


def all_gather(tensor_list, tensor, group=None, sync_op=True, use_calc_stream=None):
    """The ranks' tensors: a list of as many tensors is filled, a shorter one is extended."""
    group = group_of(group, "all_gather")
    if _outsider(group, "all_gather"):
        return None
    if recorded.wanted(tensor):
        return recorded.all_gather(tensor_list, tensor, group)
    if isinstance(tensor_list, _core.Tensor):
        return _message(_ALL_GATHER, group, tensor, tensor_list, sync=_sync(sync_op, use_calc_stream))
    flat = _like(tensor, group.nranks)
    fill = len(tensor_list) == group.nranks

    def finish():
        if fill:
            _parts(flat, tensor_list)
        else:
            tensor_list.extend(part.reshape(tensor.shape) for part in _cut(flat, group.nranks))

    return _message(_ALL_GATHER, group, tensor, flat, sync=_sync(sync_op, use_calc_stream), finish=finish)


def gather(tensor, gather_list=None, dst=0, group=None, sync_op=True, use_calc_stream=None):
    """The ranks' tensors, in a list on rank dst."""
    group = group_of(group, "gather")
    if _outsider(group, "gather"):
        return None
    here, size = group.get_group_rank(_peer(group, dst, "gather")), group.nranks
    flat = _like(tensor, size if group.rank == here else 0)
    sent = [tensor.size if r == here else 0 for r in range(size)]
    came = [tensor.size if group.rank == here else 0] * size

    def finish():
        if group.rank == here and gather_list is not None:
            gather_list[:] = [part.reshape(tensor.shape) for part in _cut(flat, size)]

    return _message(_ALL_TO_ALL, group, tensor, flat, counts=(sent, came), sync=_sync(sync_op, use_calc_stream),
                    finish=finish)


def scatter(tensor, tensor_list=None, src=0, group=None, sync_op=True, use_calc_stream=None):
    """Part r of rank src's tensor_list on rank r, in place of tensor."""
    group = group_of(group, "scatter")
    if _outsider(group, "scatter"):
        return None
    if recorded.wanted(tensor):
        return recorded.scatter(tensor, tensor_list, _peer(group, src, "scatter"), group)
    mine = group.rank == group.get_group_rank(_peer(group, src, "scatter"))
    if isinstance(tensor_list, _core.Tensor):
        parts = tensor_list if mine else None
    else:
        parts = _joined(tensor_list, "scatter") if mine else None
    return _message(_SCATTER, group, parts, tensor, peer=src, sync=_sync(sync_op, use_calc_stream))


def reduce_scatter(tensor, tensor_list, op=ReduceOp.SUM, group=None, sync_op=True, use_calc_stream=None):
    """The reduction of the ranks' part r, on rank r in place of tensor."""
    group = group_of(group, "reduce_scatter")
    if _outsider(group, "reduce_scatter"):
        return None
    if recorded.wanted(tensor):
        return recorded.reduce_scatter(tensor, tensor_list, _op(op, "reduce_scatter"), group)
    parts = tensor_list if isinstance(tensor_list, _core.Tensor) else _joined(tensor_list, "reduce_scatter")
    return _message(_REDUCE_SCATTER, group, parts, tensor, op=_op(op, "reduce_scatter"),
                    sync=_sync(sync_op, use_calc_stream))


def alltoall(in_tensor_list, out_tensor_list, group=None, sync_op=True, use_calc_stream=None):
    """Tensor r of the list goes to rank r; the tensors that came, in the order of ranks."""
    group = group_of(group, "alltoall")
    if _outsider(group, "alltoall"):
        return None
    if recorded.wanted(in_tensor_list):
        return recorded.alltoall(in_tensor_list, out_tensor_list, group)
    if isinstance(in_tensor_list, _core.Tensor):
        return _message(_ALL_TO_ALL, group, in_tensor_list, out_tensor_list, sync=_sync(sync_op, use_calc_stream))
    out = out_tensor_list or in_tensor_list
    flat = _joined(in_tensor_list, "alltoall")
    shapes = [t.shape for t in out]
    sizes = [t.size for t in out]
    came = _core.full([sum(sizes)], 0, dtype=flat.dtype)

    def finish():
        parts = [p.reshape(s) for p, s in zip(_core.split(came, sizes, 0), shapes)]
        if out_tensor_list:
            for part, tensor in zip(parts, out_tensor_list):
                _fill(tensor, part)
        else:
            out_tensor_list.extend(parts)

    counts = ([t.size for t in in_tensor_list], sizes)
    return _message(_ALL_TO_ALL, group, flat, came, counts=counts, sync=_sync(sync_op, use_calc_stream), finish=finish)


def alltoall_single(in_tensor, out_tensor, in_split_sizes=None, out_split_sizes=None, group=None, sync_op=True,
                    use_calc_stream=None):
    """Rows of in_tensor to each rank (equal parts, or as many as in_split_sizes says); what came, in out_tensor."""
    group = group_of(group, "alltoall_single")
    if _outsider(group, "alltoall_single"):
        return None

    def counts(sizes, tensor):
        row = tensor.size // tensor.shape[0] if tensor.shape[0] else 0
        return None if sizes is None else [int(n) * row for n in sizes]

    return _message(_ALL_TO_ALL, group, in_tensor, out_tensor, sync=_sync(sync_op, use_calc_stream),
                    counts=(counts(in_split_sizes, in_tensor), counts(out_split_sizes, out_tensor)))


def send(tensor, dst=0, group=None, sync_op=True, use_calc_stream=None):
    """tensor to rank dst, which calls recv."""
    group = group_of(group, "send")
    if _outsider(group, "send"):
        return None
    if recorded.wanted(tensor):
        return recorded.send(tensor, _peer(group, dst, "send"), group)
    return _message(_SEND, group, tensor, peer=_peer(group, dst, "send"), sync=_sync(sync_op, use_calc_stream))


def recv(tensor, src=0, group=None, sync_op=True, use_calc_stream=None):
    """Receives the message of rank src into tensor."""
    group = group_of(group, "recv")
    if _outsider(group, "recv"):
        return None
    if recorded.wanted(tensor):
        return recorded.recv(tensor, _peer(group, src, "recv"), group)
    return _message(_RECV, group, out=tensor, peer=_peer(group, src, "recv"), sync=_sync(sync_op, use_calc_stream))


def isend(tensor, dst, group=None):
    """send as a task."""
    return send(tensor, dst, group, sync_op=False)


def irecv(tensor, src=None, group=None):
    """recv as a task."""
    return recv(tensor, src or 0, group, sync_op=False)


class P2POp:
    """One of the messages of batch_isend_irecv: isend or irecv, its tensor and the other rank."""

    def __init__(self, op, tensor, peer, group=None):
        if op not in (isend, irecv):
            raise RuntimeError("P2POp: op must be paddle.distributed.isend or irecv")
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group


def batch_isend_irecv(p2p_op_list):
    """Starts all of them; a task each."""
    return [p.op(p.tensor, p.peer, p.group) for p in p2p_op_list]


def barrier(group=None):
    """Waits until every rank is here."""
    group = group_of(group, "barrier")
    if _outsider(group, "barrier"):
        return
    if recorded.wanted(None):
        recorded.barrier(group)
    else:
        _message(_BARRIER, group)


def wait(tensor, group=None, use_calc_stream=True):
    """There is one stream: what was called before is done."""
    group_of(group, "wait")
