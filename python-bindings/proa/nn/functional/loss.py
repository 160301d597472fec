"""Losses: classification, regression and sequences. Most other margin and embedding losses are in margin_loss.py.

Many are an op or two and a reduction; what Paddle accepts as labels is brought to the form that the op takes.
"""
import math

from ... import _core
from ..._asks import asks, need_kernel
from ..._elsewhere import elsewhere
from ..._errors import of_kind
from ...amp.auto_cast import state as autocast
from ...framework.dims import differ, is_empty, known, reshaped
from ...tensor._tools import dtype_name, need_tensor
from ._args import reduced, reduction_of

__getattr__ = elsewhere(__name__)
_WIDE = (_core.float32, _core.float64)
_FLOATING = (_core.float16, _core.bfloat16, *_WIDE)


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True,
                               return_softmax=False, axis=-1):
    """Cross-entropy of softmax(logits) along axis, one loss a row; return_softmax: (loss, softmax)."""
    _narrow(logits, label)
    if axis is None:
        raise of_kind("softmax_with_cross_entropy: axis must be an int, got NoneType")
    label = label if soft_label else _class_numbers(label)
    softmax, loss = _core.softmax_with_cross_entropy(logits, label, soft_label, True, ignore_index, axis)
    return (loss, softmax) if return_softmax else loss


def _narrow(logits, label):
    """Whether label lacks the class axis; ValueError unless it has logits' axes or one less."""
    missing = logits.ndim - label.ndim
    if missing not in (0, 1) or logits.ndim == 0:
        raise ValueError(f"cross entropy: label must have the axes of input or one less, got shapes {label.shape} and "
                         f"{logits.shape}")
    return missing == 1


def _class_numbers(label):
    """Hard labels as integers: those of files and of comparisons are floats and bools, which Paddle takes, too."""
    return _core.cast(label, "int64") if label.dtype in (*_FLOATING, _core.bool) else label


@asks("eager:label.dtype=bf,i4,i8,f4,f8,c8,c16!NotFound")
def cross_entropy(input, label, weight=None, ignore_index=-100, reduction="mean", soft_label=False, axis=-1,
                  use_softmax=True, label_smoothing=0.0, name=None):
    """Cross-entropy of softmax(input) (use_softmax=False: of probabilities) and classes or distributions.

    label: class numbers with or without the class axis, or distributions of input's shape (soft_label).
    weight: one value a class; the mean divides by the weights of the labels that count.

    >>> scores = paddle.to_tensor([[9.0, 0.0], [0.0, 9.0]])
    >>> bool(paddle.nn.functional.cross_entropy(scores, paddle.to_tensor([0, 1])) < 1e-3)
    True
    """
    if reduction not in ("mean", "sum", "none"):
        reduction_of(reduction, "cross_entropy")
    if soft_label and ignore_index > 0:
        raise ValueError(f"cross_entropy: soft labels take no ignore_index, got {ignore_index}")
    narrow = _narrow(input, label)
    label = label if soft_label else _class_numbers(label)
    if label_smoothing > 0.0:
        label = _smooth(_one_hot_along(label, input, axis) if narrow else label, label_smoothing, input.dtype)
        soft_label, narrow = True, False  # the loss keeps the class axis
    loss = _losses(input, label, soft_label, use_softmax, ignore_index, axis)
    if weight is not None:
        row = _label_weights(input, label, weight, ignore_index, soft_label, axis, loss.shape)
        loss = _core.cast(loss, row.dtype) * row
        if reduction == "mean":
            total = _core.sum(row)
            return _core.sum(loss) / (total + _core.cast(total == 0.0, total.dtype))
    if reduction == "mean":
        if soft_label and ignore_index < 0:
            return _core.mean(loss)
        if loss.is_symbolic and ignore_index < 0:  # a program does not look at the labels
            return _core.mean(loss)
        kept = label != ignore_index
        if not loss.is_symbolic and not loss.place.is_cpu_place():  # a device is not waited for
            share = kept.size / _core.clip(_core.sum(_core.cast(kept, "float32")), 1.0)
            return _core.mean(loss) * _core.cast(share, loss.dtype)
        if not loss.is_symbolic and _core.all(kept):
            return _core.mean(loss)
        return _core.sum(loss) / _core.clip(_core.sum(_core.cast(kept, loss.dtype)), 1.0)
    if reduction == "sum":
        return _core.sum(loss)
    return _core.squeeze(loss, axis) if narrow else loss


def _losses(input, label, soft_label, use_softmax, ignore_index, axis):
    """One loss a row. A program keeps the op that Paddle has; so do halves, in which a sum of powers may overflow, unless autocast
    makes float32 of them."""
    plain = use_softmax and not soft_label and axis in (-1, input.ndim - 1)
    wide = input.dtype in _WIDE or (autocast.level != "O0" and not autocast.lists[0])
    if plain and wide and not (input.is_symbolic or label.is_symbolic):
        return _core.class_cross_entropy(input, label, ignore_index)[0]
    if not soft_label and label.ndim == input.ndim - 1:  # Paddle's op wants the axis of classes
        label = _core.unsqueeze(label, axis)
    return _core.softmax_with_cross_entropy(input, label, soft_label, use_softmax, ignore_index, axis)[1]


def _one_hot(label, classes):
    """One-hot labels, of as many classes as perhaps only the run knows."""
    if known(classes):
        return _core.one_hot(label, classes)
    columns = _core.cast(_core.arange(0, classes, 1, "int64"), label.dtype)
    return _core.cast(_core.equal(_core.unsqueeze(label, [-1]), columns), _core.float32)


def _one_hot_along(label, input, axis):
    """One-hot labels of input's shape: the classes on `axis`."""
    hot = _one_hot(label, input.shape[axis])
    last, axis = input.ndim - 1, axis % input.ndim
    return hot if axis == last else _core.transpose(hot, [*range(axis), last, *range(axis, last)])


def _smooth(label, epsilon, dtype):
    label = label if label.dtype in _FLOATING else _core.cast(label, "float32")
    return _core.cast(_core.label_smooth(label, None, epsilon), dtype)


def _label_weights(input, label, weight, ignore_index, soft_label, axis, shape):
    """The weight of each row's label; 0 where it is ignored."""
    if soft_label:
        return reshaped(_core.matmul(_core.cast(label, weight.dtype), weight), shape)
    if differ(input.shape[axis], weight.shape[-1]):
        raise ValueError(f"cross_entropy: weight must have a value for each of the {input.shape[axis]} classes, got "
                         f"shape {weight.shape}")
    flat = _core.reshape(label, [-1])
    kept = flat != ignore_index
    row = _core.gather(weight, _core.multiply(flat, _core.cast(kept, flat.dtype)))
    return reshaped(row * _core.cast(kept, row.dtype), shape)


@asks("reduction=sum|mean|none input.shape label.shape input#>=2 eager:weight:Tensor,None!InvalidArgument "
      "eager:ignore_index:int!InvalidArgument eager:weight#1!InvalidArgument static:weight#1!InvalidArgument "
      "static:ignore_index:int static:label.dtype=i8")
def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean", name=None):
    """Minus the entry of input (log-probabilities [N, C, ...]) that label [N, ...] or, unless C is followed by two axes,
    [N, 1, ...] names.

    >>> likely = paddle.nn.functional.log_softmax(paddle.to_tensor([[0.0, 0.0]]))
    >>> round(paddle.nn.functional.nll_loss(likely, paddle.to_tensor([1])).item(), 4)
    0.6931
    """
    reduction_of(reduction, "nll_loss")
    if input.ndim == label.ndim != 4 and label.ndim > 1 and label.declared_shape[1] in (1, -1):
        label = _core.squeeze(label, 1)
    if input.ndim == label.ndim and dtype_name(label.dtype) not in ("int32", "int64"):
        raise ValueError(f"(InvalidArgument) nll_loss: label must be int32 or int64, got {dtype_name(label.dtype)}")
    if input.ndim < 2 or input.ndim - 1 != label.ndim:
        raise ValueError(f"nll_loss: input must be [N, C, ...] and label [N, ...], got shapes {input.shape} and "
                         f"{label.shape}")
    if input.ndim in (2, 4):
        return _core.nll_loss(input, label, weight, ignore_index, reduction)[0]
    plane = _core.reshape(input, [0, 0, 1, -1]), _core.reshape(label, [0, 1, -1])  # Paddle's op has a plane or nothing
    out = _core.nll_loss(*plane, weight, ignore_index, reduction)[0]
    return _core.reshape(out, label.shape) if reduction == "none" else out


@asks("reduction=sum|mean|none input~f2,f4,f8 label~f2,f4,f8 eager:weight:Tensor,None!InvalidArgument "
      "static:weight:Tensor,None!ValueError input>>f4,f8>>label")
def binary_cross_entropy(input, label, weight=None, reduction="mean", name=None):
    """Cross-entropy of probabilities and labels in [0, 1]."""
    loss = _core.bce_loss(input, label)
    return reduced(loss if weight is None else loss * weight, reduction, "binary_cross_entropy")


@asks("reduction=sum|mean|none eager:logit.dtype logit~f4,f8 label~f4,f8 eager:weight:Tensor,None!InvalidArgument "
      "static:weight:Tensor,None static:pos_weight:Tensor,None eager:label.dtype=f4,f8!NotFound logit,label>>f4,f8")
def binary_cross_entropy_with_logits(logit, label, weight=None, reduction="mean", pos_weight=None, name=None):
    """Cross-entropy of sigmoid(logit) and labels in [0, 1]; pos_weight: the weight of positive examples."""
    for what, w in (("weight", weight), ("pos_weight", pos_weight)):
        if w is not None:
            need_tensor(w, f"binary_cross_entropy_with_logits: {what}")
    if pos_weight is not None:
        pos_weight = label * (pos_weight - 1.0) + 1.0
    loss = _core.sigmoid_cross_entropy_with_logits(logit, label, pos_weight)
    return reduced(loss if weight is None else loss * weight, reduction, "binary_cross_entropy_with_logits")


@asks("input~f4,f8 label~f4,f8 input,label>>i2,i4,i8,bf,f4,f8,c8,c16")
def mse_loss(input, label, reduction="mean", name=None):
    """The squared difference.

    >>> paddle.nn.functional.mse_loss(paddle.to_tensor([1.0, 3.0]), paddle.to_tensor([1.0, 1.0])).item()
    2.0
    """
    need_kernel("mse_loss", "i4,i8,f4,f8", input=input, label=label)
    return reduced(_core.square(_core.subtract(input, label)), reduction, "mse_loss")


@asks("reduction:-tuple input~f4,f8,i4,i8,f2 label~f4,f8,i4,i8,f2 input,label>>i2,i4,i8,bf,f4,f8,c8,c16")
def l1_loss(input, label, reduction="mean", name=None):
    """The absolute difference."""
    return reduced(_core.abs(_core.subtract(input, label)), reduction, "l1_loss")


@asks("eager:label.dtype=f4,f8!NotFound static:label>>f4,f8 input,label>>f4,f8")
def smooth_l1_loss(input, label, reduction="mean", delta=1.0, name=None):
    """Half the squared difference below delta, a straight line above it (Huber)."""
    return reduced(_core.huber_loss(input, label, delta)[0], reduction, "smooth_l1_loss")


@asks("input~f4,f8 label~f4,f8 input,label>>i2,i4,i8,bf,f4,f8,c8,c16")
def square_error_cost(input, label):
    """The squared difference of each pair of elements."""
    return _core.square(_core.subtract(input, label))


@asks("eager:input:Tensor!InvalidArgument eager:label:Tensor!InvalidArgument input~f4 label~f4 "
      "eager:epsilon:number,bool!InvalidArgument static:epsilon:number eager:label.dtype=f4!NotFound")
def log_loss(input, label, epsilon=0.0001, name=None):
    """Cross-entropy of probabilities, each moved epsilon away from 0. As in Paddle, label gets no gradient."""
    shape = need_tensor(input, "log_loss: input").shape
    if len(shape) != 2 or differ(shape[1], 1) or len(need_tensor(label, "log_loss: label").shape) != 2:
        raise ValueError(f"(InvalidArgument) log_loss: input and label must be [N, 1], got {shape} and {label.shape}")
    label = label.detach()
    return -(label * _core.log(input + epsilon)) - (1.0 - label) * _core.log(1.0 - input + epsilon)


@asks("static:input.dtype static:label.dtype input~f4,f8 label~f4,f8 static:reduction:str eager:reduction? input>>f4,f8>>label")
def kl_div(input, label, reduction="mean", name=None):
    """Kullback-Leibler divergence of label (probabilities) from input (log-probabilities)."""
    if input.dtype != label.dtype:
        if input.dtype == _core.float32 and label.dtype == _core.float64:
            input = _core.cast(input, label.dtype)
        elif input.dtype == _core.float64 and label.dtype == _core.float32:
            label = _core.cast(label, input.dtype)
    return _core.kldiv_loss(input, label, reduction)


@asks("label.dtype=i4,i8!AssertionError")
def dice_loss(input, label, epsilon=0.00001, name=None):
    """1 - the Dice coefficient of probabilities [N, ..., C] and classes [N, ..., 1], averaged over N."""
    if input.ndim < 2 or differ(input.shape[:-1] + [1], label.shape):
        raise AssertionError(f"dice_loss: input must be [N, ..., C] and label [N, ..., 1], got shapes {input.shape} "
                             f"and {label.shape}")
    if is_empty(input):
        raise AssertionError(f"dice_loss: input must not be empty, got shape {input.shape}")
    hot = _core.cast(_one_hot(_core.squeeze(label, -1), input.shape[-1]), input.dtype)
    axes = list(range(1, input.ndim))
    both = _core.sum(input * hot, axes)
    return _core.mean(1.0 - both * 2.0 / (_core.sum(input, axes) + _core.sum(hot, axes) + epsilon))


@asks("anchor.size positive.size eager:anchor:Tensor!InvalidArgument anchor~f4,f8 positive~f4,f8 labels~f4,f8,i8")
def npair_loss(anchor, positive, labels, l2_reg=0.002):
    """Cross-entropy of the similarities of anchors and positives (Sohn, 2016), with an L2 term."""
    if is_empty(anchor) or is_empty(positive):
        raise ValueError(f"npair_loss: anchor and positive must not be empty, got {anchor.shape}, {positive.shape}")
    rows = labels.shape[0] if known(labels.shape[0]) else -1
    column, row = _core.reshape(labels, [rows, 1]), _core.reshape(labels, [1, rows])
    same = _core.cast(_core.equal(column, row), anchor.dtype)
    same = same / _core.sum(same, 1, keepdim=True)
    l2 = _core.mean(_core.sum(_core.square(anchor), 1)) + _core.mean(_core.sum(_core.square(positive), 1))
    logits = _core.matmul(anchor, positive, False, True)
    losses = _core.softmax_with_cross_entropy(logits, same, True)[1]
    return l2 * (0.25 * l2_reg) + _core.mean(_core.sum(same * losses, 0))


@asks("reduction=sum|mean|none static:normalizer:Tensor,None logit~f4,f8 label~f4,f8 eager:label.dtype=f4,f8!NotFound")
def sigmoid_focal_loss(logit, label, normalizer=None, alpha=0.25, gamma=2.0, reduction="sum", name=None):
    """Cross-entropy of sigmoid(logit) in which easy examples count less (Lin et al., 2017)."""
    reduction_of(reduction, "sigmoid_focal_loss")
    if normalizer is not None and normalizer.ndim > 1:
        raise ValueError(f"sigmoid_focal_loss: normalizer must have at most 1 axis, got shape {normalizer.shape}")
    loss = _core.sigmoid_cross_entropy_with_logits(logit, label)
    p = _core.sigmoid(logit)
    other = 1.0 - label
    hit = p * label + (1.0 - p) * other
    loss = (alpha * label + (1.0 - alpha) * other) * loss * _core.pow(1.0 - hit, gamma)
    return reduced(loss if normalizer is None else loss / normalizer, reduction, "sigmoid_focal_loss")


@asks("input~f2,bf,f4,f8 label~f2,bf,f4,f8")
def poisson_nll_loss(input, label, log_input=True, full=False, epsilon=1e-8, reduction="mean", name=None):
    """Negative log-likelihood of counts under a Poisson law; full: with Stirling's term."""
    reduction_of(reduction, "poisson_nll_loss")
    if epsilon <= 0:
        raise ValueError(f"poisson_nll_loss: epsilon must be above 0, got {epsilon}")
    if differ(input.shape, label.shape):
        raise ValueError(f"poisson_nll_loss: input and label must have one shape, got {input.shape} and {label.shape}")
    label = _core.cast(label, input.dtype)
    loss = _core.exp(input) - label * input if log_input else input - label * _core.log(input + epsilon)
    if full:
        stirling = label * _core.log(label) - label + 0.5 * _core.log(2 * math.pi * label)
        loss = loss + _core.where(label > 1.0, stirling, _core.full_like(stirling, 0.0))
    return reduced(loss, reduction, "poisson_nll_loss")


@asks("input.shape label.shape variance.shape input~f4,f8 label~f4,f8 variance~f4,f8")
def gaussian_nll_loss(input, label, variance, full=False, epsilon=1e-6, reduction="mean", name=None):
    """Negative log-likelihood under normal laws of mean `input` and a variance of its own each."""
    reduction_of(reduction, "gaussian_nll_loss")
    if not differ(variance.shape, input.shape[:-1]):
        variance = _core.unsqueeze(variance, -1)
    elif differ(variance.shape, input.shape) and differ(variance.shape, input.shape[:-1] + [1]):
        raise ValueError(f"gaussian_nll_loss: variance must have input's shape {input.shape}, or 1 or no last axis; "
                         f"got {variance.shape}")
    for what, value in (("input", input), ("label", label), ("variance", variance)):
        if value.dtype not in (_core.float32, _core.float64):
            raise ValueError(f"gaussian_nll_loss: {what} must be float32 or float64, got {value.dtype}")
    if not variance.is_symbolic and _core.any(variance < 0.0):  # a program lifts them to epsilon
        raise ValueError("gaussian_nll_loss: variance must not be negative")
    variance = _core.clip(variance.detach(), epsilon)  # a constant, as in Paddle
    loss = 0.5 * (_core.log(variance) + _core.square(input - label) / variance)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction, "gaussian_nll_loss")


@asks("log_probs~f4,f8 labels~i4")
def ctc_loss(log_probs, labels, input_lengths, label_lengths, blank=0, reduction="mean", norm_by_times=False):
    """Connectionist temporal classification (Graves et al., 2006) of logits [T, N, C] and labels [N, L].

    The mean divides each loss by its label's length first.
    """
    loss = _core.ctc_loss(log_probs, labels, input_lengths, label_lengths, blank, norm_by_times)[0]
    loss = _core.squeeze(loss, -1)
    if reduction not in ("mean", "sum", "none"):
        raise AssertionError(f"ctc_loss: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    if reduction == "mean":
        return _core.mean(loss / _core.cast(label_lengths, loss.dtype))
    return _core.sum(loss) if reduction == "sum" else loss


@asks("input~f4,f8 label~i8")
def hsigmoid_loss(input, label, num_classes, weight, bias=None, path_table=None, path_code=None, is_sparse=False,
                  name=None):
    """Hierarchical sigmoid: the cross-entropy of the path to a label in a binary tree of classes.

    is_sparse is accepted; gradients are dense.
    """
    if num_classes < 2:
        raise ValueError(f"hsigmoid_loss: num_classes must be at least 2, got {num_classes}")
    return _core.hsigmoid_loss(input, label, weight, bias, path_table, path_code, num_classes)[0]
