"""Comparisons that are more than one op: isclose, allclose, equal_all; and tests that answer with a bool."""
from .. import _core
from ._tools import Tensor, dtype_name

__all__ = ["allclose", "equal_all", "is_empty", "is_tensor", "isclose"]


def isclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    """Element by element: |x - y| ≤ atol + rtol·|y|."""
    wide = "float64" if dtype_name(x.dtype) == "float64" else "float32"
    a, b = _core.cast(x, wide), _core.cast(y, wide)
    with_equal = _core.equal(a, b)  # infinities of one sign
    bound = _core.scale(_core.abs(b), rtol, atol)
    near = _core.logical_and(_core.less_equal(_core.abs(_core.subtract(a, b)), bound), _core.isfinite(b))
    out = _core.logical_or(with_equal, near)
    if equal_nan:
        out = _core.logical_or(out, _core.logical_and(_core.isnan(a), _core.isnan(b)))
    return out


def allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    """Whether every element of x is close to y's, as a 0-D bool tensor."""
    return _core.all(isclose(x, y, rtol, atol, equal_nan))


def equal_all(x, y, name=None):
    """Whether x and y have one shape and equal elements, as a 0-D bool tensor."""
    if x.shape != y.shape:
        return _core.full([], False, "bool")
    return _core.all(_core.equal(x, y))


def is_empty(x, name=None):
    """Whether x has no elements, as a 0-D bool tensor."""
    return _core.full([], 0 in x.shape, "bool")


def is_tensor(x):
    """Whether x is a paddle.Tensor."""
    return isinstance(x, Tensor)
