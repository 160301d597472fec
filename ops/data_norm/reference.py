"""NumPy references of data_norm (columns normalized by counts, sums and square sums that are inputs) and its
gradient. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy
arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None: not
compared)."""
import numpy as np


def data_norm(x, batch_size, batch_sum, batch_square_sum, epsilon=1e-4):
    means, scales = batch_sum / batch_size, np.sqrt(batch_size / batch_square_sum)
    return (x - means) * scales, means, scales


def data_norm_grad(x, means, scales, d_y, epsilon=1e-4):
    size = np.full_like(means, len(x))
    return d_y * scales, size, x.sum(0), ((x - means) ** 2).sum(0) + size * epsilon
