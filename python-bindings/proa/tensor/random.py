"""Random tensors. Equal seeds give equal values in Proa, but other values than in Paddle."""
from .._asks import asks
from .. import _core
from ._tools import COMPLEX, FLOATING, Tensor, dtype_name, is_number, overwrite

__all__ = ["cauchy_", "exponential_", "geometric_", "normal", "normal_", "rand", "randint", "randint_like", "randn",
           "randperm", "standard_normal", "uniform", "uniform_"]


_SHAPE = "eager:shape:list,tuple,array,Tensor!AttributeError"  # Paddle reads an attribute of what is no list


def _floating(dtype, what):
    dtype = dtype_name(_core.get_default_dtype() if dtype is None else dtype)
    if dtype not in ("float16", "bfloat16", "uint16", "float32", "float64"):
        raise TypeError(f"{what}: dtype must be a floating one, got {dtype}")
    return "bfloat16" if dtype == "uint16" else dtype


def _need_shape(what, shape):
    """A program does not take a number for a shape."""
    if isinstance(shape, (int, float)) and _core.is_capturing():
        raise TypeError(f"{what}: shape must be a list, tuple or Tensor, got {type(shape).__name__}")


@asks(_SHAPE)
def uniform(shape, dtype=None, min=-1.0, max=1.0, seed=0, name=None):
    """Values drawn evenly from [min, max)."""
    return _core.uniform(shape, _floating(dtype, "uniform"), float(min), float(max), seed)


@asks(_SHAPE + " static:shape.dtype=i4,i8")
def rand(shape, dtype=None, name=None):
    """Values drawn evenly from [0, 1)."""
    _need_shape("rand", shape)
    return _core.uniform(shape, _floating(dtype, "rand"), 0.0, 1.0, 0)


@asks("dtype^ " + _SHAPE + " static:shape:list,tuple,Tensor static:shape.dtype=i4,i8")
def standard_normal(shape, dtype=None, name=None):
    """Values of the normal distribution with mean 0 and deviation 1."""
    _need_shape("standard_normal", shape)
    return _core.gaussian(shape, 0.0, 1.0, 0, _floating(dtype, "standard_normal"))


def randn(shape, dtype=None, name=None):
    """standard_normal."""
    return standard_normal(shape, dtype)


@asks("static:mean:number,Tensor static:std:number,Tensor eager:shape:some!AttributeError " + _SHAPE)
def normal(mean=0.0, std=1.0, shape=None, name=None):
    """Values of the normal distribution; mean and std may be tensors, then they give the shape."""
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        return _core.gaussian(shape, float(mean), float(std), 0, _floating(None, "normal"))
    guide = mean if isinstance(mean, Tensor) else std
    if isinstance(mean, Tensor) and isinstance(std, Tensor):
        std = _core.reshape(_core.cast(std, mean.dtype), mean.shape)
    return standard_normal(guide.shape, guide.dtype) * std + mean


def _range(low, high, what):
    if high is None:
        if isinstance(low, Tensor) and low.is_symbolic or low <= 0:
            raise ValueError(f"{what}: without high, low must be above 0, got {low}")
        low, high = 0, low
    if low >= high:
        lead = "" if _core.is_capturing() else "(InvalidArgument) "
        raise ValueError(f"{lead}{what}: low must be less than high, got low={low}, high={high}")
    return int(low), int(high)


def randint(low=0, high=None, shape=[1], dtype=None, name=None):
    """Integers drawn evenly from [low, high), or from [0, low) without high.

    >>> paddle.randint(0, 10, [2, 3]).shape
    [2, 3]
    """
    low, high = _range(low, high, "randint")
    return _core.randint(low, high, shape, "int64" if dtype is None else dtype)


def randint_like(x, low=0, high=None, dtype=None, name=None):
    """randint of x's shape, and of x's dtype unless another is given."""
    low, high = _range(low, high, "randint_like")
    return _core.cast(_core.randint(low, high, x.shape, "int64"), x.dtype if dtype is None else dtype)


@asks("static:n>0")
def randperm(n, dtype="int64", name=None):
    """The numbers 0 … n - 1 in random order.

    >>> sorted(paddle.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    if _core.is_capturing() and n == 0:
        raise ValueError("randperm: n must be above 0 in a program, got 0")
    return _core.randperm(n, dtype)


def _tensor_like(value, x):
    return _core.cast(_core.to_tensor(value), x.dtype)


def _refill(x, values, what):
    return overwrite(x, values if values.dtype == x.dtype else _core.cast(values, x.dtype), what)


@asks("eager eager:min:number,bool!InvalidArgument eager:max:number,bool!InvalidArgument")
def uniform_(x, min=-1.0, max=1.0, seed=0, name=None):
    """Refills x with values drawn evenly from [min, max)."""
    if is_number(min) and is_number(max) and not min < max:
        raise ValueError(f"(InvalidArgument) uniform_: min must be less than max, got {min} and {max}")
    return _refill(x, uniform(x.shape, x.dtype, min, max, seed), "uniform_")


@asks("eager")
def normal_(x, mean=0.0, std=1.0, name=None):
    """Refills x with values of the normal distribution."""
    return _refill(x, _core.gaussian(x.shape, float(mean), float(std), 0, x.dtype), "normal_")


def exponential_(x, lam=1.0, name=None):
    """Refills x with values of the exponential distribution of rate lam."""
    return _core.exponential_(x, lam)


@asks("eager")
def cauchy_(x, loc=0, scale=1, name=None):
    """Refills x with values of the Cauchy distribution."""
    half_turns = _core.uniform(x.shape, x.dtype, -0.5, 0.5, 0)
    values = _core.scale(_core.tan(_core.scale(half_turns, 3.141592653589793)), scale, loc if is_number(loc) else 0.0)
    return _refill(x, values if is_number(loc) else _core.add_(values, _tensor_like(loc, x)), "cauchy_")


@asks("eager")
def geometric_(x, probs, name=None):
    """Refills x with values log(u) / log(1 - probs), u drawn evenly from (0, 1)."""
    if dtype_name(x.dtype) not in FLOATING + COMPLEX:
        raise ValueError(f"geometric_: x must be floating, got {dtype_name(x.dtype)}")
    probs = _tensor_like(probs, x)
    u = _core.uniform(x.shape, x.dtype, 1.1754943508222875e-38, 1.0, 0)
    return _refill(x, _core.divide_(_core.log(u), _core.log1p(_core.neg(probs))), "geometric_")
