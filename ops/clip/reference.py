"""NumPy references of gradient clipping by one tensor's norm (clip_by_norm) and by the norm of many tensors
(clip_by_global_norm), and of the squared norms that they need, summed in float64. One function per op, named as the
op: tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with
the outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np


def clip_by_norm(x, max_norm):
    norm = np.sqrt(np.sum(np.square(x, dtype=np.float64)))
    return x * (max_norm / norm if norm > max_norm else 1)


def squared_l2_norm(x):
    return np.sum(np.square(x, dtype=np.float64)).reshape(1)


def global_squared_norm(xs):
    return np.sum([np.sum(np.square(x, dtype=np.float64)) for x in xs]).reshape(1)


def clip_by_global_norm(xs, squared_norm, max_norm):
    factor = max_norm / max(np.sqrt(float(squared_norm.reshape(-1)[0])), max_norm)
    return [(x * factor).astype(x.dtype) for x in xs]
