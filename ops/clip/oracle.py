"""Clipping by norm in real Paddle."""
from paddle import _C_ops


def clip_by_norm(x, max_norm):
    return _C_ops.clip_by_norm(x, max_norm)


def squared_l2_norm(x):
    return _C_ops.squared_l2_norm(x)
