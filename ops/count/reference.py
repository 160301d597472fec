"""NumPy references of histogram and bincount. One function per op, named as the op: tests/ops/test_ops.py calls it
with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the
op table's order (None: not compared)."""
import numpy as np


def histogram(input, bins, min, max):
    x = input.astype(np.float64).reshape(-1)
    if min == max:
        if not x.size:
            return np.zeros(bins, np.int64)
        min, max = x.min(), x.max()
        if min == max:
            min, max = min - 1, max + 1
    x = x[(x >= min) & (x <= max)]
    places = np.minimum(((x - min) * bins / (max - min)).astype(np.int64), bins - 1)
    return np.bincount(places, minlength=bins)


def bincount(x, weights, minlength):
    if not x.size:
        return np.zeros(0, np.int64)
    out = np.bincount(x, weights, minlength)
    return out if weights is None or weights.dtype != np.float32 else out.astype(np.float32)
