"""NumPy references of the losses (cross-entropies, nll_loss, huber_loss, kldiv_loss, …), of label_smooth and
accuracy, and of fused gradients. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's
fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's
order (None: not compared)."""
import numpy as np
from scipy.special import softmax as _softmax


def _one_hot(label, like, axis, ignore):
    """(one-hot labels along axis, zeros where ignored; True for rows that are not ignored)."""
    if label.ndim == like.ndim:
        label = np.squeeze(label, axis)
    counts = label != ignore
    eye = np.eye(like.shape[axis], dtype=like.dtype)[np.where(counts, label, 0)]
    eye = np.moveaxis(eye, -1, axis)
    counts = np.expand_dims(counts, axis)
    return eye * counts, counts


def softmax_with_cross_entropy(logits, label, soft_label=False, use_softmax=True, ignore_index=-100, axis=-1):
    softmax = _softmax(logits, axis=axis) if use_softmax else logits
    target = label if soft_label else _one_hot(label, logits, axis, ignore_index)[0]
    loss = -np.sum(np.where(target != 0, target * np.log(softmax), 0), axis=axis, keepdims=True)
    return softmax, loss


def softmax_with_cross_entropy_grad(label, softmax, d_loss, soft_label=False, use_softmax=True, ignore_index=-100,
                                    axis=-1):
    target, counts = (label, 1) if soft_label else _one_hot(label, softmax, axis, ignore_index)
    if not use_softmax:
        return np.where(target != 0, -target / softmax, 0) * d_loss
    return (softmax - target) * counts * d_loss


def class_cross_entropy(logits, label, ignore_index=-100):
    loss = softmax_with_cross_entropy(logits, label, ignore_index=ignore_index)[1]
    most = np.max(logits, axis=-1, keepdims=True)
    return loss, np.concatenate([most, np.sum(np.exp(logits - most), axis=-1, keepdims=True)], axis=-1)


def class_cross_entropy_grad(logits, label, sums, d_loss, ignore_index=-100):
    softmax = np.exp(logits - sums[..., :1]) / sums[..., 1:]
    return softmax_with_cross_entropy_grad(label, softmax, d_loss, ignore_index=ignore_index)


def _nll_parts(input, label, weight, ignore_index):
    target, counts = _one_hot(label, input, 1, ignore_index)
    weight = np.ones(input.shape[1], input.dtype) if weight is None else weight
    shaped = weight.reshape([1, -1] + [1] * (input.ndim - 2))
    return target * shaped, np.sum(target * shaped)


def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean"):
    target, total = _nll_parts(input, label, weight, ignore_index)
    each = -np.sum(target * input, axis=1)
    if reduction == "none":
        return each, np.zeros((), input.dtype)
    value = np.sum(each)
    if reduction == "mean":
        value = value / total if total else np.zeros((), input.dtype)
    return np.asarray(value, input.dtype), np.asarray(total, input.dtype)


def nll_loss_grad(input, label, weight, total_weight, d_out, ignore_index=-100, reduction="mean"):
    target, _ = _nll_parts(input, label, weight, ignore_index)
    d_out = np.expand_dims(d_out, 1) if reduction == "none" else d_out
    return -target * d_out / (total_weight if reduction == "mean" else 1)


def bce_loss(input, label):
    with np.errstate(divide="ignore"):
        return (label - 1) * np.maximum(np.log(1 - input), -100) - label * np.maximum(np.log(input), -100)


def sigmoid_cross_entropy_with_logits(x, label, pos_weight=None, normalize=False, ignore_index=-100):
    weight = 1 if pos_weight is None else pos_weight
    loss = np.maximum(x, 0) - x * label + weight * np.log1p(np.exp(-np.abs(x)))
    loss = np.where(label == ignore_index, 0, loss)
    return loss / max(np.sum(label != ignore_index), 1e-5) if normalize else loss


def huber_loss(input, label, delta=1.0):
    r = label - input
    return np.where(np.abs(r) <= delta, 0.5 * r * r, delta * (np.abs(r) - 0.5 * delta)), r


def kldiv_loss(x, target, reduction="mean"):
    loss = np.where(target <= 0, 0, target * (np.log(np.where(target <= 0, 1, target)) - x))
    if reduction == "none":
        return loss
    total = np.sum(loss)
    return np.asarray({"sum": total, "mean": total / np.float64(x.size), "batchmean": total / max(x.shape[0], 1)}[reduction])


def label_smooth(label, prior_dist=None, epsilon=0.1):
    prior = 1 / label.shape[-1] if prior_dist is None else prior_dist.reshape(-1)
    return (1 - epsilon) * label + epsilon * prior


def accuracy(out, indices, label):
    hits = np.sum(np.any(indices == label.reshape(-1, 1), axis=1))
    return np.float32(hits / len(indices)), np.int32(hits), np.int32(len(indices))
