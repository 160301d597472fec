"""NumPy references of embedding (rows of a table, by index) and its gradient. One function per op, named as the op:
tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the
outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np


def embedding(x, weight, padding_idx=-1, sparse=False):
    out = weight[x]
    return np.where((x == padding_idx)[..., None], np.zeros((), weight.dtype), out) if padding_idx != -1 else out


def embedding_grad(x, weight, d_out, padding_idx=-1):
    total = np.zeros(weight.shape, np.float64)
    keep = (x != padding_idx).reshape(-1)
    np.add.at(total, x.reshape(-1)[keep], d_out.reshape(-1, weight.shape[1])[keep].astype(np.float64))
    return total.astype(weight.dtype)
