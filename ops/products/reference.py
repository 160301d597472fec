"""NumPy references of cross, kron and its gradient, and renorm. One function per op, named as the op:
tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the
outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np


def cross(x, y, axis):
    axis = x.shape.index(3) if axis == 9 else axis
    return np.cross(x, y, axis=axis).astype(x.dtype)


def kron(x, y):
    return np.kron(x, y)


def kron_grad(x, y, d_out):
    ndim = max(x.ndim, y.ndim)
    xs, ys = (1,) * (ndim - x.ndim) + x.shape, (1,) * (ndim - y.ndim) + y.shape
    pairs = d_out.reshape([n for pair in zip(xs, ys) for n in pair])
    letters = "abcdefghijklmnopqr"
    of_x, of_y = letters[0:2 * ndim:2], letters[1:2 * ndim:2]
    both = letters[:2 * ndim]
    d_x = np.einsum(f"{both},{of_y}->{of_x}", pairs, np.conj(y.reshape(ys)))
    d_y = np.einsum(f"{both},{of_x}->{of_y}", pairs, np.conj(x.reshape(xs)))
    return d_x.reshape(x.shape), d_y.reshape(y.shape)


def renorm(x, p, axis, max_norm):
    others = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    wide = x.astype(np.float64)
    norm = (np.abs(wide) ** p).sum(others, keepdims=True) ** (1 / p)
    return (wide * np.where(norm > max_norm, max_norm / np.where(norm > 0, norm, 1), 1)).astype(x.dtype)
