"""What the matrix products mean, in NumPy: for the table-driven tests."""
import numpy as np

import matrix


def matmul(x, y, transpose_x, transpose_y):
    x = np.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x
    y = np.swapaxes(y, -1, -2) if transpose_y and y.ndim > 1 else y
    return np.matmul(x, y)


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
    return matrix.fused_tail(linear(x, weight, bias), residual, activation, alpha, beta)
