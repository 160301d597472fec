"""NumPy references of embedding."""
import numpy as np


def embedding(x, weight, padding_idx=-1, sparse=False):
    out = weight[x]
    return np.where((x == padding_idx)[..., None], np.zeros((), weight.dtype), out) if padding_idx != -1 else out


def embedding_grad(x, weight, d_out, padding_idx=-1):
    total = np.zeros(weight.shape, np.float64)
    keep = (x != padding_idx).reshape(-1)
    np.add.at(total, x.reshape(-1)[keep], d_out.reshape(-1, weight.shape[1])[keep].astype(np.float64))
    return total.astype(weight.dtype)
