"""Margin and embedding losses: compositions of a distance, a hinge and a reduction."""
from ... import _core
from ..._asks import asks, need_kernel
from ..._errors import need_attribute
from ...framework.dims import differ
from ._args import reduced, reduction_of
from .distance import pairwise_distance


@asks("input~f4,f8 other~f4,f8 label~f4,f8 other,input>>i2,i4,i8,bf,f4,f8,c8,c16 input,label>>b,i4,i8,bf,f4,f8,c8,c16")
def margin_ranking_loss(input, other, label, margin=0.0, reduction="mean", name=None):
    """max(0, margin - label * (input - other)): label is 1 where input should rank higher, -1 where lower."""
    reduction_of(reduction, "margin_ranking_loss")
    gap = _core.multiply(_core.subtract(other, input), label)
    return reduced(_core.relu(gap + margin if margin != 0.0 else gap), reduction, "margin_ranking_loss")


@asks("eager:label.place input~f4,f8 label~f4,f8")
def hinge_embedding_loss(input, label, margin=1.0, reduction="mean", name=None):
    """input where label is 1, max(0, margin - input) where it is -1."""
    reduction_of(reduction, "hinge_embedding_loss")
    zero = _core.full([1], 0.0, input.dtype)  # one axis at least, as Paddle's loss has
    loss = _core.where(label == 1.0, input, zero) + _core.where(label == -1.0, _core.relu(margin - input), zero)
    return reduced(loss, reduction, "hinge_embedding_loss")


@asks("label.shape label#1")
def cosine_embedding_loss(input1, input2, label, margin=0, reduction="mean", name=None):
    """1 - cos where label is 1, max(0, cos - margin) where it is -1; cos is that of the last axis."""
    reduction_of(reduction, "cosine_embedding_loss")
    if label.ndim != 1 or differ(input1.shape, input2.shape) or input1.ndim > 2:
        raise ValueError(f"cosine_embedding_loss: inputs must be [N, M] or [M] and label [N], got shapes "
                         f"{input1.shape}, {input2.shape} and {label.shape}")
    if input1.dtype not in (_core.float32, _core.float64):
        raise ValueError(f"cosine_embedding_loss: inputs must be float32 or float64, got {input1.dtype}")
    if label.dtype not in (_core.int32, _core.int64, _core.float32, _core.float64):
        raise ValueError(f"cosine_embedding_loss: label must be an integer or floating Tensor, got {label.dtype}")
    norm1 = _core.sum(_core.square(input1), -1) + 1e-11
    norm2 = _core.sum(_core.square(input2), -1) + 1e-11
    cos = _core.sum(input1 * input2, -1) / _core.sqrt(norm1 * norm2)
    zero = _core.full_like(cos, 0.0)
    loss = _core.where(label == 1, 1.0 - cos, zero) + _core.where(label == -1, _core.clip(cos - margin, 0.0), zero)
    return reduced(loss, reduction, "cosine_embedding_loss")


def _triplets(who, input, positive, negative, margin, reduction):
    reduction_of(reduction, who)
    if margin < 0:
        raise ValueError(f"{who}: margin must be at least 0, got {margin}")
    if differ(input.shape, positive.shape) or differ(positive.shape, negative.shape):
        raise ValueError(f"{who}: input, positive and negative must have one shape, got {input.shape}, "
                         f"{positive.shape} and {negative.shape}")


@asks("reduction=sum|mean|none input~f4,f8 positive~f4,f8 negative~f4,f8")
def triplet_margin_with_distance_loss(input, positive, negative, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean", name=None):
    """max(0, d(input, positive) - d(input, negative) + margin) with a distance of the caller's."""
    who = "triplet_margin_with_distance_loss"
    _triplets(who, input, positive, negative, margin, reduction)
    distance = distance_function or pairwise_distance
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = _core.minimum(far, distance(positive, negative))
    if not near.is_symbolic and not (_core.all(near > 0.0) and _core.all(far > 0.0)):
        raise ValueError(f"{who}: distance_function must return distances above 0")
    return reduced(_core.clip(near - far + margin, 0.0), reduction, who)


@asks("reduction=sum|mean|none input~f4,f8 positive~f4,f8 negative~f4,f8")
def triplet_margin_loss(input, positive, negative, margin=1.0, p=2, epsilon=1e-6, swap=False, reduction="mean",
                        name=None):
    """max(0, d(input, positive) - d(input, negative) + margin) with the p-norm of differences."""
    _triplets("triplet_margin_loss", input, positive, negative, margin, reduction)
    near = pairwise_distance(input, positive, p, epsilon)
    far = pairwise_distance(input, negative, p, epsilon)
    if swap:
        far = _core.minimum(far, pairwise_distance(positive, negative, p, epsilon))
    return reduced(_core.clip(near - far + margin, 0.0), reduction, "triplet_margin_loss")


@asks("input[0]=label[0] input#2!InvalidArgument input~f4,f8 label~i4,i8 static:weight:Tensor,None static:weight.dtype=f4,f8")
def multi_margin_loss(input, label, p: int = 1, margin: float = 1.0, weight=None, reduction="mean", name=None):
    """The mean over classes of max(0, margin - input[label] + input[class]) ** p, label's own class left out."""
    reduction_of(reduction, "multi_margin_loss")
    n, classes = input.shape
    if differ(label.shape[0], n):
        raise ValueError(f"multi_margin_loss: label must have {n} entries as input, got shape {label.shape}")
    label = _core.reshape(label, [-1, 1])
    gap = margin - _core.index_sample(input, label) + input
    if not _core.is_capturing() and not isinstance(p, (int, float)):
        need_attribute("multi_margin_loss", "dtype", "a number", p=p)
    own = margin ** p / classes
    if weight is not None:
        if differ(weight.shape[0], classes):
            raise ValueError(f"multi_margin_loss: weight must have {classes} values, got shape {weight.shape}")
        row = _core.reshape(_core.gather(weight, _core.reshape(label, [-1])), [-1, 1])
        gap = row * gap
        own = row * own
    loss = _core.mean(_core.pow(_core.clip(gap, 0.0), p), 1) - own
    return reduced(loss, reduction, "multi_margin_loss")


@asks("weight~f4,f8")
def multi_label_soft_margin_loss(input, label, weight=None, reduction="mean", name=None):
    """Cross-entropy of sigmoid(input) and several labels, averaged over classes."""
    reduction_of(reduction, "multi_label_soft_margin_loss")
    if differ(input.shape, label.shape):
        raise ValueError(f"multi_label_soft_margin_loss: input and label must have one shape, got {input.shape} and "
                         f"{label.shape}")
    loss = -(label * _core.logsigmoid(input) + (1 - label) * _core.logsigmoid(-input))
    return reduced(_core.mean(loss if weight is None else loss * weight, -1), reduction,
                   "multi_label_soft_margin_loss")


@asks("reduction=sum|mean|none input~f4,f8 label~i4,i8,f4,f8")
def soft_margin_loss(input, label, reduction="mean", name=None):
    """log(1 + exp(-label * input)), label 1 or -1."""
    reduction_of(reduction, "soft_margin_loss")
    if differ(input.shape, label.shape):
        raise ValueError(f"soft_margin_loss: input and label must have one shape, got {input.shape} and {label.shape}")
    need_kernel("soft_margin_loss", "i4,i8,f4,f8", input=input)
    loss = _core.log(1.0 + _core.exp(-_core.cast(label, input.dtype) * input))
    return reduced(loss, reduction, "soft_margin_loss")
