"""is_empty and is_tensor; comparisons are generated from the op table."""
from .. import _core
from .._asks import asks, need_kernel
from ..framework import dims
from ._tools import Tensor, need_tensor

__all__ = ["is_empty", "is_tensor"]


@asks("x~f4,f8,i4,i8")
def is_empty(x, name=None):
    """Whether x has no elements, as a 0-D bool tensor."""
    need_tensor(x, "is_empty: x")
    need_kernel("is_empty", "i4,i8,f4,f8", x=x)
    if dims.is_empty(x) or dims.known(*x.shape):
        return _core.full([], dims.is_empty(x), "bool")
    return Tensor(x.size == 0)


def is_tensor(x):
    """Whether x is a paddle.Tensor."""
    return isinstance(x, Tensor)
