"""Softmax losses over class centers that ranks may divide: margins on angles (ArcFace) and sampled centers (Partial FC)."""
from ... import _core
from ..._asks import asks
from ...framework.dims import is_empty
from ._args import reduced

__all__ = []


def _place(who, group):
    """(the group's handle, this process's rank in it, its size): group is a Group, None for all ranks, False for this process."""
    if not (group is False or group is None or hasattr(group, "is_member")):
        raise ValueError(f"{who}: group must be a Group of new_group, None or False, got {group!r}")
    if group is False:
        return None, 0, 1
    from ...distributed.group import group_of
    group = group_of(group, who)
    return group, max(group.rank, 0), group.nranks


def _is_outside(group):
    return bool(group) and group.rank < 0


def _counts(number, group):
    """Every rank's number, in their order."""
    from ...distributed import all_gather
    found = []
    all_gather(found, _core.full([1], number, "int64"), group=group)
    return [int(one) for one in found]


@asks("static:group:-tuple!ValueError static:group:-list!ValueError logits.shape label.shape logits~f2,f4,f8 label~i4,i8 eager:margin1:number,bool!InvalidArgument "
      "eager:margin2:number,bool!InvalidArgument eager:margin3:number,bool!InvalidArgument")
def margin_cross_entropy(logits, label, margin1=1.0, margin2=0.5, margin3=0.0, scale=64.0, group=None,
                         return_softmax=False, reduction="mean"):
    """Cross-entropy of scale · logits, which are cosines, where the label's angle θ counts as cos(margin1 · θ + margin2) −
    margin3. With a group of several ranks, logits are this rank's classes; return_softmax: (loss, softmax).

    >>> cosines = paddle.to_tensor([[0.9, 0.1]])
    >>> round(paddle.nn.functional.margin_cross_entropy(cosines, paddle.to_tensor([0]), scale=1.0).item(), 4)
    0.4814
    """
    who = "margin_cross_entropy"
    if reduction not in ("mean", "sum", "none", None):
        raise AssertionError(f"{who}: reduction must be 'mean', 'sum', 'none' or None, got {reduction!r}")
    group, rank, ranks = _place(who, group)
    if _is_outside(group):
        return None
    if logits.ndim - label.ndim not in (0, 1):
        raise ValueError(f"{who}: label must have the axes of logits or one less, got shapes {label.shape} and {logits.shape}")
    label = label if label.ndim == logits.ndim else _core.unsqueeze(label, -1)
    classes = logits.shape[-1]
    if ranks > 1:
        counts = _counts(classes, group)
        if len(set(counts)) > 1:
            raise NotImplementedError(f"(Unimplemented) {who}: the ranks have {counts} classes; they must have equally many")
    own = _core.equal(_core.cast(label, "int64"), _core.arange(rank * classes, (rank + 1) * classes, 1, "int64"))
    alone = _core.where(own, logits, _core.full_like(logits, 0.0))  # the slope of acos is infinite at a cosine of 1
    logits = _core.where(own, _with_margins(alone, margin1, margin2, margin3), logits) * scale
    if ranks > 1:
        softmax, loss = _core.mp_cross_entropy(logits, label, -100, group.id, rank, ranks)
    else:
        softmax, loss = _core.softmax_with_cross_entropy(logits, label, False, True, -100, -1)
    loss = loss if reduction is None else reduced(loss, reduction, who)
    return (loss, softmax) if return_softmax else loss


def _with_margins(cosines, margin1, margin2, margin3):
    if margin1 == 1.0 and margin2 == 0.0:
        return cosines - margin3
    return _core.cos(_core.acos(cosines) * margin1 + margin2) - margin3


@asks("static:num_classes:number,Tensor static:num_samples:-Tensor!ValueError")
def class_center_sample(label, num_classes, num_samples, group=None):
    """(label renumbered among the sampled classes, the sampled classes): all classes that label [N] names in rising order
    and, as far as these are fewer than num_samples, others drawn without replacement. With a group of several ranks num_classes counts this rank's
    classes, and renumbered labels count those that the ranks before it have sampled.

    >>> few = paddle.nn.functional.class_center_sample(paddle.to_tensor([7, 2, 7]), 10, 2)
    >>> few[0].tolist(), few[1].tolist()
    ([1, 0, 1], [2, 7])
    """
    who = "class_center_sample"
    group, rank, ranks = _place(who, group)
    if _is_outside(group):
        return None
    if num_samples > num_classes:
        raise ValueError(f"{who}: num_samples must be at most num_classes {num_classes}, got {num_samples}")
    if is_empty(label):
        raise ValueError(f"{who}: label must not be empty, got shape {label.shape}")
    if label.ndim != 1:
        raise ValueError(f"{who}: label must have one axis, got shape {label.shape}")
    if ranks == 1:
        order, count = _sampled(label, num_classes, num_samples)
        return _renumbered(order, label), _first(order, count, label.dtype)
    return _sampled_by_ranks(label, num_classes, num_samples, group, rank)


def _sampled(label, num_classes, num_samples):
    """(all classes, the sampled ones first: named ones in rising order, then drawn ones; how many are sampled, [1])."""
    drawn = _core.randperm(num_classes, "int64") + num_classes
    if is_empty(label):
        named = _core.full([num_classes], 0, "int64")
    else:
        named = _core.scatter(_core.full([num_classes], 0, "int64"), label, _core.full_like(_core.cast(label, "int64"), 1))
    order = _core.argsort(_core.where(named != 0, _core.arange(0, num_classes, 1, "int64"), drawn))
    return order, _core.reshape(_core.clip(_core.sum(named), num_samples), [1])


def _first(order, count, dtype):
    return _core.cast(_core.slice(order, [0], [0], [count]), dtype)


def _renumbered(order, label):
    return _core.cast(_core.gather(_core.argsort(order), label), label.dtype)


def _sampled_by_ranks(label, num_classes, num_samples, group, rank):
    """Each rank samples among its classes; a label's number is told by the rank that has its class."""
    from ...distributed import all_reduce
    start = sum(_counts(num_classes, group)[:rank])
    inside = (label >= start).logical_and(label < start + num_classes)
    order, count = _sampled(_core.masked_select(label, inside) - start, num_classes, num_samples)
    before = sum(_counts(int(count), group)[:rank])
    number = (_renumbered(order, _core.clip(label - start, 0, num_classes - 1)) + before) * _core.cast(inside, label.dtype)
    all_reduce(number, group=group)
    return number, _first(order, count, label.dtype)
