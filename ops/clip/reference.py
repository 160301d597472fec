"""NumPy references of clipping by norm."""
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
