"""Linear maps, dropout, padding, resampling, sliding windows and similarities."""
from ... import _core
from ..._asks import ask, asks, need_kernel
from ..._errors import of_kind
from ...framework.random import program_seed
from ._args import ints

_linear = _core.api("paddle.nn.functional")["linear"]  # refuses operands of two floating dtypes
_matmul = _core.api("paddle")["matmul"]


# ---- dropout -----------------------------------------------------------------------------------------------------

@asks("mode=downscale_in_infer|upscale_in_train")
def dropout(x, p=0.5, axis=None, training=True, mode="upscale_in_train", name=None):
    """Zeros with probability p in training; axis: one draw for all positions that differ in other axes only.

    >>> x = paddle.nn.functional.dropout(paddle.ones([1000]), 0.5)
    >>> sorted(set(x.tolist()))
    [0.0, 2.0]
    """
    if isinstance(p, (float, int)):
        if p == 0:
            return x
        if not 0 <= p <= 1:
            raise ValueError(f"dropout: p must be in [0, 1], got {p}")
    elif isinstance(p, _core.Tensor):
        p = float(p)
    else:
        raise TypeError(f"dropout: p must be a number or a Tensor, got {type(p).__name__}")
    seed = program_seed()
    if axis is None:
        return _core.dropout(x, p, (), bool(training), mode, seed, seed != 0)[0]
    if not training and mode == "upscale_in_train" and not x.is_symbolic:
        return x
    axes = [axis] if isinstance(axis, int) else axis
    if not isinstance(axes, (list, tuple)):
        raise TypeError(f"dropout: axis must be an int or ints, got {axis!r}")
    if min(axes, default=-1) < 0 or max(axes) >= x.ndim:
        raise ValueError(f"dropout: axis must name axes of x from 0 to {x.ndim - 1}, got {axis!r}")
    return _core.dropout(x, p, axes, bool(training), mode, seed, seed != 0)[0]


def _channels(who, x, ndim, formats, data_format):
    if x.ndim != ndim:
        raise ValueError(f"{who}: x must have {ndim} axes, got shape {x.shape}")
    if data_format not in formats:
        raise ValueError(f"{who}: data_format must be '{formats[0]}' or '{formats[1]}', got {data_format!r}")
    return (0, 1) if data_format == formats[0] else (0, ndim - 1)


@asks("data_format=NCHW|NHWC")
def dropout2d(x, p=0.5, training=True, data_format="NCHW", name=None):
    """Dropout of whole channels of images."""
    return dropout(x, p, _channels("dropout2d", x, 4, ("NCHW", "NHWC"), data_format), training)


@asks("data_format=NCDHW|NDHWC")
def dropout3d(x, p=0.5, training=True, data_format="NCDHW", name=None):
    """Dropout of whole channels of volumes."""
    return dropout(x, p, _channels("dropout3d", x, 5, ("NCDHW", "NDHWC"), data_format), training)


@asks("static:x:Tensor")
def alpha_dropout(x, p=0.5, training=True, name=None):
    """Dropout that keeps mean and variance of self-normalizing networks (Klambauer et al., 2017)."""
    if not isinstance(p, (float, int)):
        raise TypeError(f"alpha_dropout: p must be a number, got {type(p).__name__}")
    if not 0 <= p <= 1:
        raise ValueError(f"alpha_dropout: p must be in [0, 1], got {p}")
    if not training:
        return x
    if p == 1:
        return _core.scale(x, 0.0)
    low = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946
    a = ((1 - p) * (1 + p * low ** 2)) ** -0.5
    keep = _core.cast(_core.uniform(x.shape, "float32", 0.0, 1.0) >= p, x.dtype)
    return _core.scale(x * keep + _core.scale(keep, -low, low), a, -a * low * p)


# ---- padding -----------------------------------------------------------------------------------------------------

_PAD_FORMATS = {3: ("NCL", "NLC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}
_PAD_MODES = ("constant", "reflect", "replicate", "circular")


@asks("data_format.upper x.shape")
def pad(x, pad, mode="constant", value=0.0, data_format="NCHW", name=None):
    """x with its spatial axes padded: two numbers an axis, last axis first; or, in mode constant, two numbers for
    every axis of x, first axis first.

    >>> paddle.nn.functional.pad(paddle.ones([1, 1, 2, 2]), [1, 1, 0, 0]).shape
    [1, 1, 2, 4]
    """
    if mode not in _PAD_MODES:
        raise AssertionError(f"pad: mode must be one of {', '.join(_PAD_MODES)}, got {mode!r}")
    data_format = data_format.upper()
    if not any(data_format in pair for pair in _PAD_FORMATS.values()):
        raise AssertionError(f"pad: data_format must be one such as 'NCHW' or 'NLC', got {data_format!r}")
    ndim = x.ndim
    if isinstance(pad, _core.Tensor):
        pad = pad if pad.is_symbolic else pad.tolist()
    elif not isinstance(pad, (list, tuple)) and ndim in _PAD_FORMATS:
        raise TypeError(f"pad: pad must be ints or a Tensor of ints, got {pad!r}")
    elif mode == "constant" and isinstance(pad, (list, tuple)) and len(pad) == 2 * ndim:
        return _core.pad(x, pad, float(value))
    if ndim not in _PAD_FORMATS:
        raise AssertionError(f"pad: x must have 3, 4 or 5 axes, or pad two numbers for each of them; got x of shape "
                             f"{x.shape} and pad {pad}")
    if data_format not in _PAD_FORMATS[ndim]:
        raise AssertionError(f"pad: data_format must be '{_PAD_FORMATS[ndim][0]}' or '{_PAD_FORMATS[ndim][1]}' for x "
                             f"with {ndim} axes, got {data_format!r}")
    return _core.pad3d(x, pad, mode, float(value), data_format)


@asks("data_format.upper x.shape x#3,4,5!AssertionError")
def zeropad2d(x, padding, data_format="NCHW", name=None):
    """Images with zeros round them: left, right, top, bottom."""
    return pad(x, padding, "constant", 0.0, data_format)


# ---- resampling --------------------------------------------------------------------------------------------------

# mode -> (ranks of x, formats that go with them)
_MODES = {"nearest": (4, 5), "linear": (3,), "bilinear": (4,), "bicubic": (4,), "trilinear": (5,),
          "area": (3, 4, 5)}
_SAMPLE_FORMATS = {3: {"NCW": "NCL", "NWC": "NLC"}, 4: {"NCHW": "NCHW", "NHWC": "NHWC"},
                   5: {"NCDHW": "NCDHW", "NDHWC": "NDHWC"}}


@asks("data_format.upper")
def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0,
                data_format="NCHW", name=None):
    """x resampled to `size`, or to its size times scale_factor, on the spatial axes.

    >>> paddle.nn.functional.interpolate(paddle.ones([1, 3, 4, 4]), scale_factor=2).shape
    [1, 3, 8, 8]
    """
    mode, n = mode.lower(), x.ndim - 2
    if mode not in _MODES:
        raise ValueError(f"interpolate: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if x.ndim not in _MODES[mode]:
        raise ValueError(f"interpolate: mode '{mode}' takes x with {' or '.join(map(str, _MODES[mode]))} axes, got "
                         f"shape {x.shape}")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give size or scale_factor, and only one of them")
    if not isinstance(align_corners, bool):
        raise TypeError(f"interpolate: align_corners must be a bool, got {align_corners!r}")
    if align_mode not in (0, 1):
        raise ValueError(f"interpolate: align_mode must be 0 or 1, got {align_mode!r}")
    if align_corners and mode == "nearest":
        raise ValueError("interpolate: mode 'nearest' takes no align_corners")
    if mode == "area":
        return _area(x, n, size)
    layout = _SAMPLE_FORMATS[x.ndim].get(data_format.upper())
    if layout is None:
        raise ValueError(f"interpolate: data_format must be one of {', '.join(_SAMPLE_FORMATS[x.ndim])} for x of "
                         f"shape {x.shape}, got {data_format!r}")
    if size is not None:
        return _core.interpolate(x, _sizes(size, n), (), mode, align_corners, align_mode, layout)
    return _core.interpolate(x, (), _scales(scale_factor, n), mode, align_corners, align_mode, layout)


def _area(x, n, size):
    if size is None:
        raise ValueError("interpolate: mode 'area' needs size")
    from . import pooling
    pool = (pooling.adaptive_avg_pool1d, pooling.adaptive_avg_pool2d, pooling.adaptive_avg_pool3d)[n - 1]
    return pool(x, size)


def _sizes(size, n):
    parts = size if isinstance(size, (list, tuple)) else [size]
    if any(isinstance(s, _core.Tensor) and s.is_symbolic for s in parts):  # known, and checked, when the program runs
        return size if parts[0] is size else [
            s if isinstance(s, _core.Tensor) else _core.full([1], int(s), _core.int32) for s in parts]
    if isinstance(size, _core.Tensor):
        size = size.tolist()
    elif isinstance(size, (list, tuple)):
        size = [int(s) for s in size]
    if not isinstance(size, list):
        raise TypeError(f"interpolate: size must be ints or a Tensor of ints, got {size!r}")
    if len(size) != n:
        raise ValueError(f"interpolate: size must have {n} numbers, got {size}")
    if min(size) < 1:
        raise AssertionError(f"interpolate: size must be above 0, got {size}")
    return size


def _scales(scale, n):
    if isinstance(scale, _core.Tensor):
        scale = scale.tolist()
    if not isinstance(scale, (list, tuple)):
        try:
            scale = [float(scale)] * n
        except TypeError:
            raise TypeError(f"interpolate: scale_factor must be a number, numbers or a Tensor, got {scale!r}") from None
    scale = [float(s) for s in scale]
    scale = scale * n if len(scale) == 1 else scale
    if len(scale) != n:
        raise ValueError(f"interpolate: scale_factor must have {n} numbers, got {scale}")
    if min(scale) <= 0:
        raise ValueError(f"interpolate: scale_factor must be above 0, got {scale}")
    return scale


def upsample(x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0, data_format="NCHW",
             name=None):
    """The older name of interpolate."""
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format)


# ---- sliding windows ---------------------------------------------------------------------------------------------

def _pair(value, who, what):
    if not isinstance(value, int) and not (isinstance(value, (list, tuple)) and len(value) == 2):
        raise AssertionError(f"{who}: {what} must be an int or two ints, got {value!r}")
    return ints(value, 2, who, what)


def _borders(value, who):
    """Four paddings: top, left, bottom, right."""
    if isinstance(value, int):
        return [value] * 4
    if isinstance(value, (list, tuple)) and len(value) in (2, 4):
        return list(value) * (4 // len(value))
    raise ValueError(f"{who}: paddings must be an int or 2 or 4 ints, got {value!r}")


@asks("static:x:Tensor x~bf,f2,f4,f8")
def unfold(x, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    """The windows of images [N, C, H, W] as columns: [N, C * kh * kw, windows]."""
    if x.ndim != 4:
        raise AssertionError(f"unfold: x must be [N, C, H, W], got shape {x.shape}")
    need_kernel("unfold", "f4,f8", x=x)
    return _core.unfold(x, _pair(kernel_sizes, "unfold", "kernel_sizes"), _pair(strides, "unfold", "strides"),
                        _borders(paddings, "unfold"), _pair(dilations, "unfold", "dilations"))


@asks("x~f4,f8,c8,c16")
def fold(x, output_sizes, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    """Columns [N, C * kh * kw, windows] added up into images of output_sizes: the transpose of unfold."""
    if x.ndim != 3:
        raise AssertionError(f"fold: x must be [N, C * kh * kw, windows], got shape {x.shape}")
    return _core.fold(x, _pair(output_sizes, "fold", "output_sizes"), _pair(kernel_sizes, "fold", "kernel_sizes"),
                      _pair(strides, "fold", "strides"), _borders(paddings, "fold"),
                      _pair(dilations, "fold", "dilations"))


# ---- similarities and bilinear forms -----------------------------------------------------------------------------

@asks("static:x1.dtype static:x2.dtype x1,x2>>b,i4,i8,bf,f4,f8,c8,c16")
def cosine_similarity(x1, x2, axis=1, eps=1e-8):
    """The cosine of the angle between x1 and x2 along an axis.

    >>> x = paddle.to_tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> paddle.nn.functional.cosine_similarity(x, 2 * x, axis=1).numpy().round(3).tolist()
    [1.0, 1.0]
    """
    both = _core.sum(_core.multiply(x1, x2), axis)
    norms = _core.sum(_core.square(x1), axis) * _core.sum(_core.square(x2), axis)
    return both / _core.sqrt(_core.clip(norms, eps * eps))


def linear(x, weight, bias=None, name=None):
    """x @ weight + bias, for a weight [in, out]; also for others that x can be multiplied with, as in Paddle.

    >>> paddle.nn.functional.linear(paddle.ones([2, 3]), paddle.ones([3, 4])).shape
    [2, 4]
    """
    try:
        plain = weight.ndim == 2 and (bias is None or bias.ndim == 1 and bias.dtype == weight.dtype)
    except AttributeError:
        raise of_kind("linear: weight and bias must be Tensors, got "
                      f"{type(weight).__name__} and {type(bias).__name__}") from None
    try:
        if plain:
            return _linear(x, weight, bias)
        out = _matmul(x, weight)
    except Exception as error:
        ask("static:x.dtype x,weight>>i4,i8,f4,f8,c8,c16", "linear", error, x=x, weight=weight)
        raise
    return out if bias is None else _core.add(out, bias)


@asks("eager:x1:Tensor!InvalidArgument eager:x2:Tensor!InvalidArgument eager:weight:Tensor!InvalidArgument "
      "eager:bias:Tensor,None!InvalidArgument static:x1:Tensor static:x2:Tensor static:weight:Tensor static:bias:Tensor,None "
      "eager:bias.dtype=f4,f8!NotFound x2#2!InvalidArgument weight#3!InvalidArgument")
def bilinear(x1, x2, weight, bias=None, name=None):
    """x1 · weight[k] · x2 for every k, plus bias: x1 [N, I], x2 [N, J], weight [K, I, J], bias [1, K]."""
    k, i, j = weight.shape
    left = _core.reshape(_matmul(x1, _core.reshape(_core.transpose(weight, [1, 0, 2]), [i, k * j])), [-1, k, j])
    out = _core.sum(left * _core.unsqueeze(x2, 1), -1)
    return out if bias is None else out + bias


@asks("static:epsilon:-Tensor!ValueError static:prior_dist:Tensor,None!ValueError label~bf,f2,f4,f8")
def label_smooth(label, prior_dist=None, epsilon=0.1, name=None):
    """(1 - epsilon) * label + epsilon * prior_dist (the uniform one if not given)."""
    if not 0.0 <= epsilon <= 1.0:
        raise ValueError(f"label_smooth: epsilon must be in [0, 1], got {epsilon}")
    return _core.label_smooth(label, prior_dist, epsilon)
