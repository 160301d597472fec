"""clip_by_norm and squared_l2_norm in real Paddle. One function per op, named as the op: tests/ops/run_matrix.py
calls it with the op's fields, tensors as Paddle tensors, and saves the outputs that it returns, in the op table's
order (None: not compared), for tests/ops/test_ops.py."""
from paddle import _C_ops


def clip_by_norm(x, max_norm):
    return _C_ops.clip_by_norm(x, max_norm)


def squared_l2_norm(x):
    return _C_ops.squared_l2_norm(x)
