"""Functions of tensor parallelism, for layers of one's own: each is differentiable, and its gradient's communication is the
counterpart of its own. group: None is the whole job's."""
from ..... import _core
from ....group import group_of
from ....partition import split


def _place(group, who):
    group = group_of(group, who)
    return {"group": group.id, "rank": group.rank, "nranks": group.nranks}


def _c_identity(tensor, group=None, skip_c_identity_dynamic=False):
    """tensor itself, whose gradient is summed over the ranks."""
    return _core.mp_identity(tensor, group=group_of(group, "_c_identity").id)


def _mp_allreduce(tensor, op=0, group=None, use_calc_stream=True, use_model_parallel=True, skip_c_identity_dynamic=False):
    """The ranks' sum, whose gradient is each rank's own."""
    if op != 0:
        raise ValueError(f"_mp_allreduce: op must be ReduceOp.SUM (0), got {op}")
    return _core.mp_all_reduce(tensor, group=group_of(group, "_mp_allreduce").id)


def _c_concat(tensor, group=None):
    """The ranks' tensors joined along the last axis."""
    return _core.mp_concat(tensor, **_place(group, "_c_concat"))


def _c_split(tensor, group=None):
    """This rank's part of the last axis."""
    return _core.mp_split(tensor, **_place(group, "_c_split"))


def _c_lookup_table(table, index, start_index=0, vocab_size=-1, name=None):
    """table[index - start_index]; zeros where this rank's rows have none."""
    return _core.mp_embedding(table, index, start_index=start_index, vocab_size=vocab_size)


def _c_softmax_with_cross_entropy(logits, label, group=None, return_softmax=False, ignore_index=-100):
    """Cross-entropy of logits whose classes are divided among the ranks; return_softmax: and this rank's probabilities."""
    if label.ndim < logits.ndim:
        label = label.unsqueeze(-1)
    softmax, loss = _core.mp_cross_entropy(logits, label, ignore_index=ignore_index,
                                           **_place(group, "_c_softmax_with_cross_entropy"))
    return (loss, softmax) if return_softmax else loss


__all__ = ["split"]
