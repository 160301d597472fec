"""Communication in static programs: each call adds an op that is executed in the run, and saved as Paddle's op
(c_allreduce_sum, send_v2, …)."""
from .. import _core
from ..framework.mode import in_dynamic_mode

_REDUCTIONS = ("SUM", "MAX", "MIN", "PROD", "AVG")


def wanted(tensor):
    """Whether a call with this tensor, or the first of a list, belongs to a program."""
    if isinstance(tensor, (list, tuple)):
        tensor = tensor[0] if tensor else None
    return not in_dynamic_mode() and (not isinstance(tensor, _core.Tensor) or tensor.is_symbolic)


def _place(group):
    return {"group": group.id, "nranks": group.nranks}


def _set(tensor, value):
    """tensor becomes value, as in-place ops have it."""
    from ..tensor.creation import assign
    assign(value.reshape(tensor.declared_shape), tensor)


def all_reduce(tensor, op, group):
    _core.all_reduce_(tensor, op=_REDUCTIONS[op], group=group.id)


def reduce(tensor, dst, op, group):
    _core.reduce_to_(tensor, dst=group.get_group_rank(dst), op=_REDUCTIONS[op], group=group.id)


def broadcast(tensor, src, group):
    _core.broadcast_(tensor, src=group.get_group_rank(src), group=group.id)


def all_gather(tensor_list, tensor, group):
    joined = _core.all_gather(tensor, **_place(group))
    if isinstance(tensor_list, _core.Tensor):
        _set(tensor_list, joined)
    else:
        tensor_list.extend(_core.split(joined, [tensor.declared_shape[0]] * group.nranks, 0))


def scatter(tensor, tensor_list, src, group):
    mine = group.rank == group.get_group_rank(src)
    if isinstance(tensor_list, _core.Tensor):
        parts = tensor_list
    else:
        parts = _core.concat(list(tensor_list) if mine else [tensor] * group.nranks, 0)
    _set(tensor, _core.scatter_from(parts, src=group.get_group_rank(src), **_place(group)))


def reduce_scatter(tensor, tensor_list, op, group):
    parts = tensor_list if isinstance(tensor_list, _core.Tensor) else _core.concat(list(tensor_list), 0)
    _set(tensor, _core.reduce_scatter(parts, op=_REDUCTIONS[op], **_place(group)))


def alltoall(in_tensors, out_tensors, group):
    if isinstance(in_tensors, _core.Tensor):
        _set(out_tensors, _core.all_to_all(in_tensors, group=group.id))
        return
    came = _core.all_to_all(_core.concat(list(in_tensors), 0), group=group.id)
    parts = _core.split(came, [in_tensors[0].declared_shape[0]] * group.nranks, 0)
    if out_tensors:
        for tensor, part in zip(out_tensors, parts):
            _set(tensor, part)
    else:
        out_tensors.extend(parts)


def send(tensor, dst, group):
    _core.p2p_send(tensor, group.get_group_rank(dst), group=group.id)


def recv(tensor, src, group):
    _set(tensor, _core.p2p_recv(group.get_group_rank(src), tensor.declared_shape, tensor.dtype, group=group.id))


def barrier(group):
    _core.barrier(_core.full([1], 1, dtype="int32"), group=group.id)
