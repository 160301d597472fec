"""The matrix products in real Paddle."""
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
