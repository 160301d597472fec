"""Tests that answer with a bool: is_empty, is_tensor."""
from .. import _core
from ._tools import Tensor

__all__ = ["is_empty", "is_tensor"]


def is_empty(x, name=None):
    """Whether x has no elements, as a 0-D bool tensor."""
    return _core.full([], 0 in x.shape, "bool")


def is_tensor(x):
    """Whether x is a paddle.Tensor."""
    return isinstance(x, Tensor)
