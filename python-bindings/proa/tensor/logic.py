"""equal, is_empty and is_tensor; other comparisons are generated from the op table."""
from .. import _core
from ..framework import dims
from ._tools import Tensor, need_tensor

__all__ = ["equal", "is_empty", "is_tensor"]


def equal(x, y, name=None):
    """Element by element, whether x is y: a tensor that broadcasts with x, or a number."""
    if not isinstance(y, (Tensor, int, float)):
        raise TypeError(f"equal: y must be a Tensor or a number, got {type(y).__name__}")
    return _core.equal(x, y) if isinstance(y, Tensor) else x == y


def is_empty(x, name=None):
    """Whether x has no elements, as a 0-D bool tensor."""
    need_tensor(x, "is_empty: x")
    if dims.is_empty(x) or dims.known(*x.shape):
        return _core.full([], dims.is_empty(x), "bool")
    return Tensor(x.size == 0)


def is_tensor(x):
    """Whether x is a paddle.Tensor."""
    return isinstance(x, Tensor)
