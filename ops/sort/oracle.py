"""sort, argsort, topk, kthvalue, mode and searchsorted in real Paddle. One function per op, named as the op:
tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors, and saves the outputs that it
returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
import paddle

from paddle import argsort, kthvalue, mode, searchsorted  # noqa: F401


def sort(x, axis, descending):
    return paddle.sort(x, axis, descending), paddle.argsort(x, axis, descending)


def topk(x, k, axis, largest, sorted, k_tensor):
    return paddle.topk(x, k, axis, largest, sorted)
