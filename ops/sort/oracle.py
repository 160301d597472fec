"""The sorting ops in real Paddle. Indices of equal elements may differ there, so values are compared."""
import paddle

from paddle import argsort, kthvalue, mode, searchsorted  # noqa: F401


def sort(x, axis, descending):
    return paddle.sort(x, axis, descending), paddle.argsort(x, axis, descending)


def topk(x, k, axis, largest, sorted, k_tensor):
    return paddle.topk(x, k, axis, largest, sorted)
