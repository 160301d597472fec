"""NumPy references of the matrix products: matmul, bmm, mv, dot, addmm, linear, and fused forms of linear and
matmul. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy
arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None: not
compared)."""
import numpy as np

import matrix


def matmul(x, y, transpose_x, transpose_y):
    x = np.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x
    y = np.swapaxes(y, -1, -2) if transpose_y and y.ndim > 1 else y
    return np.matmul(x, y)


def matmul_swapped(x, y, transpose_x, transpose_y):
    return np.swapaxes(matmul(x, y, transpose_x, transpose_y), -3, -2)


def bmm(x, y):
    return np.matmul(x, y)


def mv(x, vec):
    return x @ vec


def dot(x, y):
    return np.sum(x * y, axis=-1, dtype=x.dtype)


def addmm(input, x, y, beta, alpha):
    return beta * input + alpha * (x @ y)


def linear(x, weight, bias):
    out = np.matmul(x, weight)
    return out if bias is None else out + bias


def linear_fused(x, weight, bias, residual, activation, alpha, beta, constant_weight):
    return matrix.epilogue(linear(x, weight, bias), residual, activation, alpha, beta)


def linear_gelu(x, weight, bias):
    pre = linear(x, weight, bias)
    return matrix.epilogue(pre, None, "gelu_tanh", 0, 0), pre


def linear_gelu_grad(d_out, weight, pre):
    k = np.sqrt(2 / np.pi)
    t = np.tanh(k * (pre + 0.044715 * pre ** 3))
    slope = 0.5 * (1 + t) + 0.5 * pre * (1 - t * t) * k * (1 + 3 * 0.044715 * pre * pre)
    d_pre = slope * (d_out @ weight.T)
    return d_pre, d_pre.reshape(-1, d_pre.shape[-1]).sum(0)


def linear_weight_grad(x, d_out):
    rows = d_out.reshape(-1, d_out.shape[-1])
    return x.reshape(-1, x.shape[-1]).T @ rows, rows.sum(0)
