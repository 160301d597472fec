"""The matrix products matmul, bmm, mv, dot, addmm and linear in real Paddle. One function per op, named as the op:
tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors, and saves the outputs that it
returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
import paddle


def matmul(x, y, transpose_x, transpose_y):
    return paddle.matmul(x, y, transpose_x, transpose_y)


def bmm(x, y):
    return paddle.bmm(x, y)


def mv(x, vec):
    return paddle.mv(x, vec)


def dot(x, y):
    return paddle.dot(x, y)


def addmm(input, x, y, beta, alpha):
    return paddle.addmm(input, x, y, beta, alpha)


def linear(x, weight, bias):
    return paddle.nn.functional.linear(x, weight, bias)
