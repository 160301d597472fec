"""Activations that convert arguments first; activations that are a single op are generated from the op table."""
from ... import _core
from ..._asks import asks
from ..._errors import of_kind
from ...framework.dims import alike, differ, known
from ...tensor._tools import need_tensor, overwrite


@asks("eager:x.dtype=f4,f8!NotFound")
def prelu(x, weight, data_format="NCHW", name=None):
    """x where positive, else weight * x; weight has one value, or one a channel.

    >>> paddle.nn.functional.prelu(paddle.to_tensor([-2.0, 3.0]), paddle.to_tensor([0.5])).tolist()
    [-1.0, 3.0]
    """
    shape = weight.shape
    if len(shape) > 1:
        raise AssertionError(f"prelu: weight must have 0 or 1 axes, got shape {shape}")
    if len(shape) == 0 or alike(shape[0], 1):
        return _core.prelu(x, weight if shape else _core.reshape(weight, [1]), "NCHW", "all")
    if data_format not in ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"):
        raise ValueError(f"prelu: data_format must be one such as 'NCHW' or 'NHWC', got {data_format!r}")
    last = data_format[1] != "C"
    if x.ndim < 2 or differ(x.shape[-1 if last else 1], shape[0]):
        raise AssertionError(f"prelu: weight has {shape[0]} values, which must be x's channels; x has shape {x.shape}")
    if not known(shape[0]):  # one value or one a channel: the run broadcasts it
        slope = weight if last else _core.reshape(weight, [-1] + [1] * (x.ndim - 2))
        return _core.where(_core.greater_than(x, _core.full([], 0, x.dtype)), x, _core.multiply(x, slope))
    return _core.prelu(x, weight, "NHWC" if last else "NCHW", "channel")


@asks("lower:float upper:float eager:x:Tensor!InvalidArgument x~f2,bf,f4,f8")
def rrelu(x, lower=1.0 / 8.0, upper=1.0 / 3.0, training=True, name=None):
    """x where positive, else x times a slope drawn from [lower, upper) (their mean outside training)."""
    if not isinstance(lower, float) or not isinstance(upper, float):
        raise TypeError(f"rrelu: lower and upper must be floats, got {lower!r} and {upper!r}")
    if not 0 <= lower <= upper <= 1:
        raise ValueError(f"rrelu: expected 0 <= lower <= upper <= 1, got {lower} and {upper}")
    if not training:
        return _core.leaky_relu(x, (lower + upper) / 2)
    slope = _core.uniform(x.shape, x.dtype, lower, upper)
    return _core.where(x >= 0, x, x * slope)


def _need_axis(who, axis):
    if axis is None and not _core.is_capturing():
        raise of_kind(f"{who}: axis must be an int, got NoneType")


def softmax(x, axis=-1, dtype=None, name=None):
    """exp(x) / sum(exp(x)) along an axis, in dtype if one is given.

    >>> paddle.nn.functional.softmax(paddle.to_tensor([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    _need_axis("softmax", axis)
    return _core.softmax(x if dtype is None else _core.cast(x, dtype), axis)


def softmax_(x, axis=-1, dtype=None, name=None):
    """softmax in place."""
    return _core.softmax_(x if dtype is None else _core.cast(x, dtype), axis)


def log_softmax(x, axis=-1, dtype=None, name=None):
    """The logarithm of softmax, in dtype if one is given."""
    _need_axis("log_softmax", axis)
    return _core.log_softmax(x if dtype is None else _core.cast(x, dtype), axis)


@asks("x~f2,f4,f8")
def glu(x, axis=-1, name=None):
    """The first half of x along an axis times the sigmoid of the second.

    >>> paddle.nn.functional.glu(paddle.to_tensor([4.0, 0.0])).tolist()
    [2.0]
    """
    supplied = _core.is_capturing() and isinstance(axis, _core.Tensor)
    if not supplied and not -x.ndim <= axis < x.ndim:
        raise ValueError(f"glu: axis must be in [{-x.ndim}, {x.ndim}), got {axis}")
    if not supplied and _core.is_capturing() and known(x.shape[axis]) and x.shape[axis] % 2:
        raise AssertionError(f"glu: x must have an even length along axis {axis}, got shape {x.shape}")
    a, b = _core.split(x, (), 2, axis)
    return a * _core.sigmoid(b)


@asks("eager:x:Tensor!InvalidArgument eager:temperature:number,bool!InvalidArgument eager:hard:bool!InvalidArgument "
      "static:x:Tensor temperature&float,int")
def gumbel_softmax(x, temperature=1.0, hard=False, axis=-1, name=None):
    """A sample of the Gumbel-softmax distribution; hard: one-hot, with the gradient of the soft sample."""
    if type(hard).__name__ not in ("bool", "bool_"):  # NumPy's, too
        raise of_kind(f"gumbel_softmax: hard must be a bool, got {type(hard).__name__}")
    wide = x.dtype if x.dtype == _core.float64 else _core.float32  # in a half type u would round to 1, whose noise is infinite
    noise = -_core.log(-_core.log(_core.uniform(x.shape, wide, 1e-5, 1.0)))
    soft = _core.softmax((x + (noise if x.dtype == wide else _core.cast(noise, x.dtype))) / temperature, axis)
    if not hard:
        return soft
    best = _core.argmax(soft, axis, True)
    one = _core.put_along_axis(_core.full_like(soft, 0.0), best, _core.full([1] * x.ndim, 1.0, soft.dtype), axis)
    return (one - soft.detach()) + soft


def _in_place(name, x, *arguments):
    """x overwritten by an activation that keeps its argument for the gradient: the gradient's is a copy."""
    need_tensor(x, f"{name}_: x")
    kept = _core.assign(x) if _core.is_recording() and not x.stop_gradient else x
    return overwrite(x, getattr(_core, name)(kept, *arguments), name + "_")


def hardtanh_(x, min=-1.0, max=1.0, name=None):
    """hardtanh in place."""
    return _in_place("hardtanh", x, min, max)


def leaky_relu_(x, negative_slope=0.01, name=None):
    """leaky_relu in place."""
    return _in_place("leaky_relu", x, negative_slope)


def thresholded_relu_(x, threshold=1.0, name=None):
    """thresholded_relu in place."""
    return _in_place("thresholded_relu", x, threshold)
