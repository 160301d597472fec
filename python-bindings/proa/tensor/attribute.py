"""rank, and the tests of a tensor's dtype: is_complex, is_floating_point, is_integer."""
from .. import _core
from .._errors import need_attribute
from ._tools import COMPLEX, FLOATING, INTEGER, Tensor, dtype_name, need_tensor, need_variable

__all__ = ["is_complex", "is_floating_point", "is_integer", "rank"]


def rank(input):
    """The number of axes, as a 0-D int32 tensor."""
    need_variable(input, "rank: input")
    need_attribute("rank", "shape", input=input)
    return _core.full([], len(need_tensor(input, "rank: input").shape), "int32")


def _dtype_of(x, who):
    if not isinstance(x, Tensor):
        raise TypeError(f"{who}: x must be a Tensor, got {type(x).__name__}")
    return x.dtype


def is_complex(x):
    """Whether x's dtype is complex64 or complex128."""
    return dtype_name(_dtype_of(x, "is_complex")) in COMPLEX


def is_floating_point(x):
    """Whether x's dtype is float16, bfloat16, float32 or float64."""
    return dtype_name(_dtype_of(x, "is_floating_point")) in FLOATING


def is_integer(x):
    """Whether x's dtype is uint8, int8, int16, int32 or int64."""
    return dtype_name(_dtype_of(x, "is_integer")) in INTEGER
