"""Metrics as operators: accuracy and auc."""
from .._asks import asks
from .. import _core
from ..framework import unique_name
from .variable import make_persistable

__all__ = ["accuracy", "auc", "ctr_metric_bundle"]


@asks("input:Tensor label:Tensor correct.name total.name")
def accuracy(input, label, k=1, correct=None, total=None):
    """Share of rows of input, [N, C], whose label, [N, 1], is among the k largest entries."""
    if len(label.shape) == 1:
        label = _core.unsqueeze(label, [-1])
    values, indices = _core.topk(input, k)
    share, hits, count = _core.accuracy(values, indices, label)
    for wanted, made in ((correct, hits), (total, count)):
        if wanted is not None:
            _core.assign_to(_core.cast(made, wanted.dtype), wanted)
    return share


def _area(positives, negatives):
    """Area under the ROC curve from counts by threshold, lowest first, [buckets]."""
    true = _core.cumsum(_core.flip(positives, [0]), 0)
    false = _core.cumsum(_core.flip(negatives, [0]), 0)
    all_true, all_false = _core.max(true), _core.max(false)
    before = true - _core.flip(positives, [0])
    area = _core.sum((true + before) * _core.flip(negatives, [0])) / 2.0
    whole = _core.cast(all_true, "float64") * _core.cast(all_false, "float64")
    one = _core.full([], 1.0, "float64")
    return _core.where(whole > 0.0, area / _core.maximum(whole, one), _core.full([], 0.0, "float64"))


def _windowed(batch, steps, size):
    """The sum of a batch's counts and those of the batches before it, `steps` in all."""
    window = make_persistable(unique_name.generate("auc_window"), [steps, size], _core.float64, 0.0)
    moved = _core.concat([_core.slice(window, [0], [1], [steps]), _core.reshape(batch, [1, size])], 0)
    _core.assign_to(moved, window)
    return _core.sum(moved, [0])


@asks("input~f4,f8 label~i4,i8 ins_tag_weight:Tensor,None")
def auc(input, label, curve="ROC", num_thresholds=4095, topk=1, slide_steps=1, ins_tag_weight=None):
    """Area under the ROC curve of input[:, 1] against label, [N, 1]: over all batches so far, and of this batch.

    Returns (auc, batch auc, [batch positives, batch negatives, positives, negatives]); the last four are counts by
    threshold. slide_steps: the batch value is over so many batches up to this one, or over all (0).
    """
    if curve != "ROC":
        raise ValueError(f"auc: curve must be 'ROC', got {curve!r}")
    if not isinstance(slide_steps, int):
        raise TypeError(f"auc: slide_steps must be an int, got {type(slide_steps).__name__}")
    if slide_steps < 0:
        raise ValueError(f"auc: slide_steps must be 0 or more, got {slide_steps}")
    if ins_tag_weight is not None:
        raise ValueError("auc: ins_tag_weight is not supported; leave it out")
    size = num_thresholds + 1
    score = _core.cast(_core.slice(input, [1], [1], [2]), "float64")
    bucket = _core.cast(_core.flatten(score) * float(num_thresholds), "int64")
    hot = _core.one_hot(bucket, size)
    truth = _core.cast(_core.reshape(label, [-1, 1]), hot.dtype)
    now = [_core.cast(_core.sum(hot * share, [0]), "float64") for share in (truth, 1.0 - truth)]
    stats = [make_persistable(unique_name.generate("auc_stat"), [size], _core.float64, 0.0) for _ in range(2)]
    for stat, batch in zip(stats, now):
        _core.assign_to(stat + batch, stat)
    whole = _area(*stats)
    recent = [_windowed(batch, slide_steps, size) for batch in now] if slide_steps > 1 else now
    return whole, (_area(*recent) if slide_steps else whole), [*recent, *stats]


def _added(name, batch, shape=(1,)):
    """The sum over all batches so far, float32."""
    total = make_persistable(unique_name.generate(name), list(shape), _core.float32, 0.0)
    _core.assign_to(total + _core.cast(_core.reshape(batch, list(shape)), total.dtype), total)
    return total


@asks("input:Tensor label.shape ins_tag_weight:Tensor,None!ValueError")
def ctr_metric_bundle(input, label, ins_tag_weight=None):
    """Sums over all batches so far, from which metrics of click-through rates are made: of (input − label)², |input − label|,
    input, sigmoid(input), label, and the number of rows. ins_tag_weight, whose first entry is 0 for a batch of fake data, weights
    the sums of sigmoid(input) and of rows."""
    if input.declared_shape != label.declared_shape:
        raise AssertionError("ctr_metric_bundle: input and label must have one shape, got "
                             f"{input.declared_shape} and {label.declared_shape}")
    for what, one in (("input", input), ("label", label)):
        if one.dtype != _core.float32:
            raise ValueError(f"(InvalidArgument) ctr_metric_bundle: {what} must be float32, got {one.dtype}")
    error = input - label
    rows = _core.cast(_core.slice(_core.shape(label), [0], [0], [1]), "float32")
    weight = _core.full([1], 1.0, "float32") if ins_tag_weight is None else \
        _core.cast(_core.slice(ins_tag_weight, [0], [0], [1]), "float32")
    return (_added("ctr_sqrerr", _core.sum(_core.square(error))), _added("ctr_abserr", _core.sum(_core.abs(error))),
            _added("ctr_prob", _core.sum(input)), _added("ctr_q", _core.sum(_core.sigmoid(input)) * weight, [1, 1]),
            _added("ctr_pos_num", _core.sum(label)), _added("ctr_ins_num", rows * weight, [1, 1]))
