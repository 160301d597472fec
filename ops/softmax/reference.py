"""NumPy references of softmax, log_softmax and their gradients. One function per op, named as the op:
tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the
outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np
from scipy.special import log_softmax as _log_softmax, softmax as _softmax


def softmax(x, axis=-1):
    return _softmax(x, axis=axis)


def softmax_grad(out, d_out, axis=-1):
    return out * (d_out - np.sum(d_out * out, axis=axis, keepdims=True))


def log_softmax(x, axis=-1):
    return _log_softmax(x, axis=axis)


def log_softmax_grad(out, d_out, axis=-1):
    return d_out - np.exp(out) * np.sum(d_out, axis=axis, keepdims=True)
