"""NumPy reference of cvm. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors
as NumPy arrays, and compares Proa's outputs with the outputs that it returns."""
import numpy as np


def cvm(x, cvm, offsets=None, use_cvm=True):
    views, clicks = np.log(x[:, :1] + 1), np.log(x[:, 1:2] + 1)
    return np.concatenate([views, clicks - views, x[:, 2:]], 1) if use_cvm else x[:, 2:]
