"""NumPy references of data_norm (columns normalized by counts, sums and square sums that are inputs) and its
gradient. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy
arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None: not
compared)."""
import numpy as np


def shown(x, slot_dim):
    """Whether the slot of each element begins with a number other than 0."""
    width = x.shape[1]
    first = np.arange(width) // slot_dim * slot_dim if slot_dim > 0 else None
    return np.ones(x.shape, bool) if first is None else np.abs(x[:, first]) >= 1e-7


def data_norm(x, batch_size, batch_sum, batch_square_sum, scale_w=None, bias=None, epsilon=1e-4, slot_dim=-1,
              enable_scale_and_shift=False):
    means, scales = batch_sum / batch_size, np.sqrt(batch_size / batch_square_sum)
    y = (x - means) * scales
    y = y * scale_w + bias if enable_scale_and_shift else y
    return np.where(shown(x, slot_dim), y, 0), means, scales


def data_norm_grad(x, means, scales, scale_w, bias, d_y, epsilon=1e-4, slot_dim=-1, enable_scale_and_shift=False):
    there = shown(x, slot_dim)
    d = np.where(there, d_y, 0)
    count, total, squares = there.sum(0), (x * there).sum(0), ((x - means) ** 2 * there).sum(0)
    by = np.maximum(count, 1) if slot_dim > 0 else 1
    statistics = count / by, total / by, squares / by + count * epsilon
    if not enable_scale_and_shift:
        return (d_y * scales, *statistics, None, None)
    return (d * scales * scale_w, *statistics, (d * (x - means) * scales).sum(0), d.sum(0))
