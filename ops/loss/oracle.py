"""The losses (softmax_with_cross_entropy, nll_loss, huber_loss, kldiv_loss, …), label_smooth and accuracy in real
Paddle. One function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as
Paddle tensors, and saves the outputs that it returns, in the op table's order (None: not compared), for
tests/ops/test_ops.py."""
from paddle import _C_ops


def softmax_with_cross_entropy(logits, label, soft_label=False, use_softmax=True, ignore_index=-100, axis=-1):
    return _C_ops.cross_entropy_with_softmax(logits, label, soft_label, use_softmax, True, ignore_index, axis)


def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean"):
    return _C_ops.nll_loss(input, label, weight, ignore_index, reduction)


def bce_loss(input, label):
    return _C_ops.bce_loss(input, label)


def sigmoid_cross_entropy_with_logits(x, label, pos_weight=None, normalize=False, ignore_index=-100):
    return _C_ops.sigmoid_cross_entropy_with_logits(x, label, pos_weight, normalize, ignore_index)


def huber_loss(input, label, delta=1.0):
    return _C_ops.huber_loss(input, label, delta), label - input


def kldiv_loss(x, target, reduction="mean"):
    return _C_ops.kldiv_loss(x, target, reduction)


def label_smooth(label, prior_dist=None, epsilon=0.1):
    return _C_ops.label_smooth(label, prior_dist, epsilon)


def accuracy(out, indices, label):
    return _C_ops.accuracy(out, indices, label)
