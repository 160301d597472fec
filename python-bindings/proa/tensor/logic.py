"""Tests of tensors: equal, is_empty, is_tensor."""
from .. import _core
from ._tools import Tensor

__all__ = ["equal", "is_empty", "is_tensor"]


def equal(x, y, name=None):
    """Element by element, whether x is y: a tensor that broadcasts with x, or a number."""
    return _core.equal(x, y) if isinstance(y, Tensor) else x == y


def is_empty(x, name=None):
    """Whether x has no elements, as a 0-D bool tensor."""
    return _core.full([], 0 in x.shape, "bool")


def is_tensor(x):
    """Whether x is a paddle.Tensor."""
    return isinstance(x, Tensor)
