"""Functional normalizations: p-norm (normalize), batch, layer, instance and local response normalization. The caller
passes weights and running statistics where there are any; the layers of nn/layer/norm.py own them."""
from operator import index

from ... import _core
from ..._asks import ask, asks
from ...framework.dims import differ, reshaped

_CHANNELS_LAST = {"NC": False, "NCL": False, "NCHW": False, "NCDHW": False, "NLC": True, "NHWC": True, "NDHWC": True}


@asks("static:axis:int eager:x.dtype")
def normalize(x, p=2, axis=1, epsilon=1e-12, name=None):
    """x divided by its p-norm along an axis (at least epsilon)."""
    norm = _core.p_norm(x, float(p), axis, epsilon, True)
    return x / _core.clip(norm, epsilon)


def statistics_move(*statistics):
    """To be called before a program's op writes running statistics: in a loop of a converted function they are its
    variables."""
    from ...jit.dy2static.runtime import changes
    changes.statistics_move(*statistics)


@asks("eager:x.dtype=f4,f8!NotFound static:x#>=2!AssertionError static:running_mean:Tensor static:running_var:Tensor "
      "static:running_mean#1 static:running_var#1")
def batch_norm(x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.9, epsilon=1e-05,
               data_format="NCHW", use_global_stats=None, name=None):
    """Batch normalization; in training the running statistics move towards the batch's, in place."""
    if x.ndim < 2:
        raise AssertionError(f"batch_norm: x must have at least 2 axes, got shape {x.shape}")
    last = _CHANNELS_LAST.get(data_format)
    if last is None:
        raise ValueError(f"batch_norm: data_format must be one of {', '.join(_CHANNELS_LAST)}, got {data_format!r}")
    if use_global_stats is None:
        use_global_stats, trainable = not training, False
    else:
        trainable = not use_global_stats
    if x.is_symbolic and not use_global_stats:
        statistics_move(running_mean, running_var)
    return _core.batch_norm(x, running_mean, running_var, weight, bias, not training, momentum, epsilon,
                            "NHWC" if last else "NCHW", use_global_stats, trainable)[0]


def layer_norm(x, normalized_shape, weight=None, bias=None, epsilon=1e-05, name=None):
    """Layer normalization over the last axes, whose sizes are normalized_shape."""
    if isinstance(normalized_shape, (list, tuple)):
        sizes = list(normalized_shape)
    else:
        try:
            sizes = [index(normalized_shape)]
        except TypeError:
            raise ValueError(f"layer_norm: normalized_shape must be an int or ints, got {normalized_shape!r}") from None
    shape = x.shape
    begin = len(shape) - len(sizes)
    if begin < 0 or differ(shape[begin:], sizes):
        raise ValueError(f"layer_norm: x must end with axes {sizes} (normalized_shape), got shape {shape}")
    try:
        return _core.layer_norm(x, weight, bias, epsilon, begin)[0]
    except Exception as error:
        ask("x>>f4,f8>>weight x>>f4,f8>>bias", "layer_norm", error, x=x, weight=weight, bias=bias)
        raise


@asks("eager:x.dtype=f4,f8!NotFound")
def instance_norm(x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.9,
                  eps=1e-05, data_format="NCHW", name=None):
    """Instance normalization: each channel of each example with statistics of its own (channels second). As in Paddle,
    programs read weight and bias only where both are given."""
    if x.is_symbolic and not (isinstance(weight, _core.Tensor) and isinstance(bias, _core.Tensor)):
        weight = bias = None
    return _core.instance_norm(x, weight, bias, eps)[0]


@asks("static:x:Tensor data_format=NCL|NLC|NCHW|NHWC|NCDHW|NDHWC static:size:int")
def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0, data_format="NCHW", name=None):
    """x / (k + alpha * mean of the squares of `size` neighboring channels) ** beta."""
    if data_format not in _CHANNELS_LAST or data_format == "NC":
        raise ValueError(f"local_response_norm: data_format must be one of NCL, NCHW, NCDHW, NLC, NHWC, NDHWC, got "
                         f"{data_format!r}")
    shape = x.shape
    if len(shape) < 3:
        raise ValueError(f"local_response_norm: x must have at least 3 axes, got shape {shape}")
    last = _CHANNELS_LAST[data_format]
    before, after = size // 2, (size - 1) // 2
    flat = [shape[0], 1, -1, shape[-1]] if last else [shape[0], 1, shape[1], -1]
    square = reshaped(_core.square(x), flat)
    window, pads = ([1, size], [0, 0, 0, 0, 0, 0, before, after]) if last else \
        ([size, 1], [0, 0, 0, 0, before, after, 0, 0])
    mean = _core.avg_pool2d(_core.pad(square, pads), window, [1, 1])
    return x / _core.pow(_core.scale(reshaped(mean, shape), alpha, k), beta)
