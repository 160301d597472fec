"""Layers as functions: each call makes its parameters in the main program, named as Paddle names them."""
import math

from ..._asks import asks
from ... import _core
from ..._elsewhere import elsewhere
from ..._errors import need_rank
from ...framework import unique_name
from ...framework.dims import known
from ...framework.param_attr import ParamAttr
from ...framework.parameter import make_parameter
from ...nn import functional as F
from ...nn.initializer import Constant, Normal
from ...nn.initializer.draw import of_convolution
from .sequence_lod import offsets_of

__all__ = ["batch_norm", "bilinear_tensor_product", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose",
           "embedding", "fc", "group_norm", "instance_norm", "layer_norm", "prelu", "row_conv", "spectral_norm"]

__getattr__ = elsewhere(__name__)


def _owner(kind, name):
    return name if name is not None else unique_name.generate(kind)


def _activated(out, act, who):
    if act is None:
        return out
    fn = getattr(F, act, None) if isinstance(act, str) else None
    if fn is None:
        raise ValueError(f"{who}: there is no activation {act!r}")
    return fn(out)


def _need_variable(x, who, what="input"):
    if not isinstance(x, _core.Tensor):
        raise TypeError(f"{who}: {what} must be a Variable, got {type(x).__name__}")
    return x


def fc(x, size, num_flatten_dims=1, weight_attr=None, bias_attr=None, activation=None, name=None):
    """x · weight + bias over the axes from num_flatten_dims on; a list of inputs has a weight each, and is summed."""
    owner = _owner("fc", name)
    inputs = list(x) if isinstance(x, (list, tuple)) else [x]
    attrs = weight_attr if isinstance(weight_attr, (list, tuple)) else [weight_attr] * len(inputs)
    total = None
    for one, attr in zip(inputs, attrs):
        shape = _need_variable(one, "fc", "x").shape
        axis = num_flatten_dims + len(shape) if num_flatten_dims < 0 else num_flatten_dims
        if not 0 < axis < max(len(shape), 2):
            raise ValueError(f"{'(InvalidArgument) ' if axis > 0 else ''}fc: num_flatten_dims must be in [1, {len(shape) - 1}], got {num_flatten_dims}")
        inner = shape[axis:]
        if not known(*inner):
            raise ValueError(f"fc: the axes from {axis} on must have known sizes, got shape {shape}")
        weight = make_parameter(owner, attr, [math.prod(inner), size], one.dtype)
        flat = one if len(inner) == 1 else _core.flatten(one, axis, len(shape) - 1)
        part = _core.matmul(flat, weight)
        levels = _core.variable_lod(one) if one.is_symbolic else ()
        if levels:  # a product forgets the sequences of its rows; this layer keeps them
            part = _core.lod_reset(part, one, levels[-1])[0]
            _core.set_variable_lod(part, levels)
        total = part if total is None else _core.add(total, part)
    bias = make_parameter(owner, bias_attr, [size], total.dtype, is_bias=True)
    if bias is not None:
        total = _core.add(total, bias)
    return _activated(total, activation, "fc")


def mark_table(weight, is_sparse, is_distributed, entry=None, is_test=False):
    """Says that a job with parameter servers keeps this parameter there; is_distributed: its rows come into being when they are
    read, as entry says."""
    if is_sparse or is_distributed:
        before = getattr(weight, "table_kind", None) or {"grows": False, "entry": None, "is_test": True}  # of other look-ups in it
        weight.table_kind = {"grows": before["grows"] or bool(is_distributed), "entry": entry or before["entry"],
                             "is_test": before["is_test"] and bool(is_test)}


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
    """Rows of a table of `size` [rows, width] at the indices in input. is_sparse: in a job with parameter servers they keep the
    table, which starts as this process's startup program says; is_distributed: its rows come into being when they are read."""
    weight = make_parameter(_owner("embedding", None), param_attr, size, dtype)
    mark_table(weight, is_sparse, is_distributed)
    return F.embedding(_need_variable(input, "embedding"), weight, padding_idx)


def _numbers(value, n):
    return [value] * n if isinstance(value, int) else list(value)


def _conv(kind, n, fn, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr, bias_attr, act,
          name, data_format):
    owner = _owner(kind, name)
    if data_format not in (("NCHW", "NHWC") if n == 2 else ("NCDHW", "NDHWC")):
        raise ValueError(f"{kind}: data_format {data_format!r} is unknown")
    need_rank(kind, n + 2, input=_need_variable(input, kind))
    channels = input.shape[1 if data_format[1] == "C" else -1]
    groups = groups or 1
    if not known(channels) or channels < 1 or channels % groups:
        raise ValueError(f"{kind}: the channels of input, {channels}, must be known and divisible by groups, {groups}")
    kernel = _numbers(filter_size, n)
    weight = make_parameter(owner, param_attr, [num_filters, channels // groups, *kernel], input.dtype,
                            default_initializer=of_convolution(math.prod(kernel) * channels))
    bias = make_parameter(owner, bias_attr, [num_filters], input.dtype, is_bias=True)
    return _activated(fn(input, weight, bias, stride, padding, dilation, groups, data_format), act, kind)


def conv2d(input, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None, param_attr=None,
           bias_attr=None, use_cudnn=True, act=None, name=None, data_format="NCHW"):
    """Convolution of images with a new kernel."""
    return _conv("conv2d", 2, F.conv2d, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr,
                 bias_attr, act, name, data_format)


def conv3d(input, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None, param_attr=None,
           bias_attr=None, use_cudnn=True, act=None, name=None, data_format="NCDHW"):
    """Convolution of volumes with a new kernel."""
    return _conv("conv3d", 3, F.conv3d, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr,
                 bias_attr, act, name, data_format)


def _transposed_kernel(kind, n, shape, output_size, filter_size, padding, stride, dilation, first):
    """The kernel's size: given, or the one that makes outputs of output_size."""
    if filter_size is not None:
        return _numbers(filter_size, n)
    if output_size is None:
        raise ValueError(f"{kind}: give output_size or filter_size")
    if isinstance(padding, str) or isinstance(padding, (list, tuple)) and len(padding) != n:
        raise ValueError(f"{kind}: with output_size alone, padding must be an int or {n} ints")
    sizes, pads, steps, gaps = (_numbers(v, n) for v in (output_size, padding, stride, dilation))
    return [(sizes[i] - (shape[first + i] - 1) * steps[i] + 2 * pads[i] - 1) // gaps[i] + 1 for i in range(n)]


def _conv_transpose(kind, n, fn, input, num_filters, output_size, filter_size, padding, stride, dilation, groups,
                    param_attr, bias_attr, act, name, data_format):
    owner = _owner(kind, name)
    last = data_format[1] != "C"
    need_rank(kind, n + 2, input=_need_variable(input, kind))
    shape, groups = input.shape, groups or 1
    kernel = _transposed_kernel(kind, n, shape, output_size, filter_size, padding, stride, dilation, 1 if last else 2)
    channels = shape[-1 if last else 1]
    weight = make_parameter(owner, param_attr, [channels, num_filters // groups, *kernel], input.dtype)
    bias = make_parameter(owner, bias_attr, [num_filters], input.dtype, is_bias=True)
    out = fn(input, weight, bias, stride, padding, 0, groups=groups, dilation=dilation, output_size=output_size,
             data_format=data_format)
    return _activated(out, act, kind)


def conv2d_transpose(input, num_filters, output_size=None, filter_size=None, padding=0, stride=1, dilation=1,
                     groups=None, param_attr=None, bias_attr=None, use_cudnn=True, act=None, name=None,
                     data_format="NCHW"):
    """The transpose of conv2d, with a new kernel."""
    return _conv_transpose("conv2d_transpose", 2, F.conv2d_transpose, input, num_filters, output_size, filter_size,
                           padding, stride, dilation, groups, param_attr, bias_attr, act, name, data_format)


def conv3d_transpose(input, num_filters, output_size=None, filter_size=None, padding=0, stride=1, dilation=1,
                     groups=None, param_attr=None, bias_attr=None, use_cudnn=True, act=None, name=None,
                     data_format="NCDHW"):
    """The transpose of conv3d, with a new kernel."""
    return _conv_transpose("conv3d_transpose", 3, F.conv3d_transpose, input, num_filters, output_size, filter_size,
                           padding, stride, dilation, groups, param_attr, bias_attr, act, name, data_format)


@asks("input~f2,bf,f4,f8 act:str,None")
def batch_norm(input, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None, bias_attr=None,
               data_layout="NCHW", in_place=False, name=None, moving_mean_name=None, moving_variance_name=None,
               do_model_average_for_mean_and_var=True, use_global_stats=False):
    """Batch normalization; the running statistics are persistable variables that every training run moves."""
    owner = _owner("batch_norm", name)
    shape = _need_variable(input, "batch_norm").shape
    if epsilon < 0:
        raise ValueError(f"(InvalidArgument) batch_norm: epsilon must be 0 or more, got {epsilon}")
    size = [shape[1 if data_layout == "NCHW" else -1]]
    dtype = "float32" if input.dtype == _core.float16 else input.dtype
    scale = make_parameter(owner, param_attr, size, dtype, default_initializer=Constant(1.0))
    bias = make_parameter(owner, bias_attr, size, dtype, is_bias=True)
    statistics = [make_parameter(owner, ParamAttr(name=given, initializer=Constant(value), trainable=False,
                                                  do_model_average=do_model_average_for_mean_and_var), size, dtype)
                  for given, value in ((moving_mean_name, 0.0), (moving_variance_name, 1.0))]
    if isinstance(momentum, _core.Tensor):
        raise TypeError("batch_norm: momentum must be a number; a Variable is not supported")
    out = _core.batch_norm(input, *statistics, scale, bias, is_test, momentum, epsilon, data_layout,
                           use_global_stats, False)[0]
    return _activated(out, act, "batch_norm")


def layer_norm(input, scale=True, shift=True, begin_norm_axis=1, epsilon=1e-05, param_attr=None, bias_attr=None,
               act=None, name=None):
    """Normalization over the axes from begin_norm_axis on, with a scale and a shift an element."""
    owner = _owner("layer_norm", name)
    shape = _need_variable(input, "layer_norm").shape
    size = [math.prod(shape[begin_norm_axis:])]
    weight = make_parameter(owner, param_attr, size, input.dtype, default_initializer=Constant(1.0)) if scale else None
    bias = make_parameter(owner, bias_attr, size, input.dtype, is_bias=True) if shift else None
    return _activated(_core.layer_norm(input, weight, bias, epsilon, begin_norm_axis)[0], act, "layer_norm")


@asks("input~f2,bf,f4,f8 input#>=2 act:str,None")
def group_norm(input, groups, epsilon=1e-05, param_attr=None, bias_attr=None, act=None, data_layout="NCHW",
               name=None):
    """Normalization over groups of channels."""
    owner = _owner("group_norm", name)
    if data_layout not in ("NCHW", "NHWC"):
        raise ValueError(f"group_norm: data_layout must be 'NCHW' or 'NHWC', got {data_layout!r}")
    size = [_need_variable(input, "group_norm").shape[1 if data_layout == "NCHW" else -1]]
    weight = make_parameter(owner, param_attr, size, input.dtype, default_initializer=Constant(1.0))
    bias = make_parameter(owner, bias_attr, size, input.dtype, is_bias=True)
    return _activated(_core.group_norm(input, groups, weight, bias, epsilon, data_layout)[0], act, "group_norm")


def instance_norm(input, epsilon=1e-05, param_attr=None, bias_attr=None, name=None):
    """Normalization of every channel of every sample."""
    owner = _owner("instance_norm", name)
    size = [_need_variable(input, "instance_norm").shape[1]]
    if (param_attr is False) != (bias_attr is False):
        raise ValueError("instance_norm: param_attr and bias_attr must be False together")
    weight = make_parameter(owner, param_attr, size, input.dtype, default_initializer=Constant(1.0))
    bias = make_parameter(owner, bias_attr, size, input.dtype, is_bias=True)
    return _core.instance_norm(input, weight, bias, epsilon)[0]


@asks("x~f2,f4,f8")
def prelu(x, mode, param_attr=None, data_format="NCHW", name=None):
    """max(0, x) + alpha · min(0, x) with one alpha in all ('all'), a channel ('channel') or an element ('element')."""
    owner = _owner("prelu", name)
    shape = _need_variable(x, "prelu", "x").shape
    if mode not in ("all", "channel", "element"):
        raise ValueError(f"prelu: mode must be 'all', 'channel' or 'element', got {mode!r}")
    if data_format not in ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"):
        raise ValueError(f"prelu: data_format {data_format!r} is unknown")
    last = data_format[1] != "C"
    size = {"all": [1], "channel": [1, *([1] * (len(shape) - 2)), shape[-1]] if last else
            [1, shape[1], *([1] * (len(shape) - 2))], "element": [1, *shape[1:]]}[mode]
    alpha = make_parameter(owner, param_attr, size, x.dtype, default_initializer=Constant(0.25))
    return _core.prelu(x, alpha, "NHWC" if last else "NCHW", mode)


@asks("x:Tensor,array y.shape y:Tensor,array")
def bilinear_tensor_product(x, y, size, act=None, name=None, param_attr=None, bias_attr=None):
    """x · W_i · y for each of `size` matrices W_i, plus a bias."""
    owner = _owner("bilinear_tensor_product", name)
    weight = make_parameter(owner, param_attr, [size, x.shape[1], y.shape[1]], x.dtype)
    bias = make_parameter(owner, bias_attr, [1, size], x.dtype, is_bias=True)
    return _activated(F.bilinear(x, y, weight, bias), act, "bilinear_tensor_product")


def row_conv(input, future_context_size, param_attr=None, act=None):
    """Each step of [N, T, D], or of sequences of rows, plus the steps ahead, weighted by a filter
    [future_context_size + 1, D]."""
    shape = _need_variable(input, "row_conv").shape
    if len(shape) not in (2, 3):
        raise ValueError(f"row_conv: input must be [N, T, D] or sequences of rows, got shape {shape}")
    weight = make_parameter(_owner("row_conv", None), param_attr, [future_context_size + 1, shape[-1]], input.dtype)
    if len(shape) == 3:
        return _activated(_steps_ahead(input, future_context_size, weight), act, "row_conv")
    apart = _core.multiply(_core.unsqueeze(weight, [1]), _core.eye(shape[-1], dtype=weight.dtype))
    apart = _core.reshape(apart, [-1, shape[-1]])  # a filter that leaves columns apart
    total = _core.sequence_conv(input, apart, offsets_of(input, "row_conv"), future_context_size + 1, 0)
    return _activated(total, act, "row_conv")


def _steps_ahead(input, future_context_size, weight):
    ahead = F.pad(input, [0, 0, 0, future_context_size, 0, 0])
    total = None
    for i in range(future_context_size + 1):
        part = _core.multiply(_core.slice(ahead, [1], [i], [input.shape[1] + i]), weight[i])
        total = part if total is None else _core.add(total, part)
    return total


@asks("weight~f4,f8 dim:int power_iters:int eps:float")
def spectral_norm(weight, dim=0, power_iters=1, eps=1e-12, name=None):
    """weight over its largest singular value, as power_iters steps of power iteration find it."""
    owner = _owner("spectral_norm", name)
    shape = _need_variable(weight, "spectral_norm", "weight").shape
    if len(shape) < 2:
        raise ValueError(f"(InvalidArgument) spectral_norm: weight must have 2 dims or more, got shape {shape}")
    if dim not in (0, 1):
        raise ValueError(f"spectral_norm: dim must be 0 or 1, got {dim}")
    rows = shape[dim]
    vectors = []
    for size in (rows, math.prod(shape) // rows):
        vector = make_parameter(owner, ParamAttr(initializer=Normal(0.0, 1.0), trainable=False), [size], weight.dtype)
        vectors.append(vector)
    u, v = vectors
    order = [dim, *(i for i in range(len(shape)) if i != dim)]
    matrix = _core.reshape(weight if dim == 0 else _core.transpose(weight, order), [rows, -1])
    still = matrix.detach() if not matrix.is_symbolic else matrix
    for _ in range(power_iters):
        v = F.normalize(_core.matmul(still, u, True), axis=0, epsilon=eps)
        u = F.normalize(_core.matmul(still, v), axis=0, epsilon=eps)
    if power_iters and u.is_symbolic:
        u.stop_gradient = v.stop_gradient = True
    sigma = _core.sum(_core.multiply(u, _core.matmul(matrix, v)))
    return _core.divide(weight, sigma)
