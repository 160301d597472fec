"""fluid.dygraph.nn: layers with the signatures of Paddle 2.0, over the operators of that time."""
import math

from ... import _core
from ...framework.dtype import get_default_dtype
from ...nn import BatchNorm, InstanceNorm2D, Layer, SpectralNorm
from ...nn.initializer import Constant
from ...nn.initializer.draw import of_convolution
from ...static.nn.loss import alias_table
from ...static.variable import Variable
from .. import layers
from ..data_feeder import check_type, check_variable_and_dtype
from ..layer_helper import one_op

__all__ = ["BatchNorm", "BilinearTensorProduct", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Dropout",
           "Embedding", "Flatten", "GRUUnit", "GroupNorm", "InstanceNorm", "LayerNorm", "Linear", "NCE", "PRelu", "Pool2D",
           "RowConv", "SpectralNorm", "TreeConv"]


def _numbers(value, n):
    return [value] * n if isinstance(value, int) else list(value)


def _activated(out, act):
    return out if act is None else one_op(act, {"X": out}, {}, "Out")


class _Conv(Layer):
    """A convolution: subclasses say of how many dims, and which way."""

    _dims, _transposed = 2, False

    def __init__(self, num_channels, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None,
                 param_attr=None, bias_attr=None, use_cudnn=True, act=None, dtype="float32", data_format=None):
        if param_attr is False:
            raise AssertionError("param_attr should not be False here.")
        super().__init__()
        n = self._dims
        self._groups, self._act, self._dtype = groups or 1, act, dtype
        self._stride, self._padding, self._dilation = (_numbers(v, n) for v in (stride, padding, dilation))
        self._data_format = data_format or ("NCHW" if n == 2 else "NCDHW")
        kernel = _numbers(filter_size, n)
        if num_channels % self._groups:
            raise ValueError("num_channels must be divisible by groups.")
        if self._transposed:
            shape, init = [num_channels, num_filters // self._groups, *kernel], None
        else:
            shape = [num_filters, num_channels // self._groups, *kernel]
            init = of_convolution(math.prod(kernel) * num_channels)
        self.weight = self.create_parameter(shape, param_attr, dtype, False, init)
        self.bias = self.create_parameter([num_filters], bias_attr, dtype, True)

    def _call(self, x, **more):
        kind = f"conv{self._dims}d{'_transpose' if self._transposed else ''}"
        if not self._transposed and self._dims == 2 and self._groups > 1 and self._groups == self.weight.shape[0] and \
                self.weight.shape[1] == 1:
            kind = "depthwise_conv2d"
        out = one_op(kind, {"Input": x, "Filter": self.weight},
                     {"strides": self._stride, "paddings": self._padding, "dilations": self._dilation,
                      "groups": self._groups, "data_format": self._data_format, **more}, "Output")
        if self.bias is not None:
            out = one_op("elementwise_add", {"X": out, "Y": self.bias},
                         {"axis": 1 if self._data_format[1] == "C" else -1}, "Out")
        return _activated(out, self._act)

    def forward(self, input):
        return self._call(input)


class Conv2D(_Conv):
    """A convolution of images."""


class Conv3D(_Conv):
    """A convolution of volumes."""

    _dims = 3


class Conv2DTranspose(_Conv):
    """A transposed convolution of images."""

    _transposed = True

    def __init__(self, num_channels, num_filters, filter_size, output_size=None, padding=0, stride=1, dilation=1,
                 groups=None, param_attr=None, bias_attr=None, use_cudnn=True, act=None, dtype="float32"):
        super().__init__(num_channels, num_filters, filter_size, stride, padding, dilation, groups, param_attr, bias_attr,
                         use_cudnn, act, dtype)
        self._output_size = [] if output_size is None else _numbers(output_size, self._dims)

    def forward(self, input):
        return self._call(input, output_size=self._output_size)


class Conv3DTranspose(_Conv):
    """A transposed convolution of volumes."""

    _dims, _transposed = 3, True

    def __init__(self, num_channels, num_filters, filter_size, padding=0, stride=1, dilation=1, groups=None,
                 param_attr=None, bias_attr=None, use_cudnn=True, act=None, dtype="float32"):
        super().__init__(num_channels, num_filters, filter_size, stride, padding, dilation, groups, param_attr, bias_attr,
                         use_cudnn, act, dtype)


class Pool2D(Layer):
    """The largest or the mean of each window of images."""

    def __init__(self, pool_size=-1, pool_type="max", pool_stride=1, pool_padding=0, global_pooling=False, use_cudnn=True,
                 ceil_mode=False, exclusive=True, data_format="NCHW"):
        super().__init__()
        if pool_type not in ("max", "avg"):
            raise ValueError(f"Unknown pool_type: '{pool_type}'. It can only be 'max' or 'avg'.")
        if not global_pooling and pool_size == -1:
            raise ValueError("When the global_pooling is False, pool_size must be passed and be a valid value.")
        if data_format not in ("NCHW", "NHWC"):
            raise ValueError(f"Attr(data_format) should be 'NCHW' or 'NHWC'. Received Attr(data_format): {data_format}.")
        self._args = (pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn, ceil_mode, None, exclusive,
                      data_format)

    def forward(self, input):
        return layers.pool2d(input, *self._args)


class Linear(Layer):
    """x · weight + bias."""

    def __init__(self, input_dim, output_dim, param_attr=None, bias_attr=None, act=None, dtype="float32"):
        super().__init__()
        self._act, self._dtype = act, dtype
        self.weight = self.create_parameter([input_dim, output_dim], param_attr, dtype)
        self.bias = self.create_parameter([output_dim], bias_attr, dtype, True)

    def forward(self, input):
        out = _core.matmul(input, self.weight)
        return _activated(out if self.bias is None else _core.add(out, self.bias), self._act)


class Dropout(Layer):
    """Elements set to zero at random while training."""

    def __init__(self, p=0.5, seed=None, dropout_implementation="downgrade_in_infer", is_test=False):
        super().__init__()
        if not isinstance(p, (float, int)):
            raise AssertionError("p argument should be a number")
        if not 0 <= p <= 1:
            raise AssertionError("p argument should between 0 and 1")
        self._p, self._seed, self._mode, self._is_test = p, seed or None, dropout_implementation, is_test

    def forward(self, input):
        return layers.dropout(input, self._p, not self.training or self._is_test, self._seed,
                              dropout_implementation=self._mode)


class Embedding(Layer):
    """Rows of a table at indices."""

    def __init__(self, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
        super().__init__()
        self._size, self._sparse, self._dtype = size, is_sparse, dtype
        self._padding = -1 if padding_idx is None else padding_idx if padding_idx >= 0 else size[0] + padding_idx
        self.weight = self.create_parameter(list(size), param_attr, dtype)

    def forward(self, input):
        return one_op("lookup_table_v2", {"W": self.weight, "Ids": input},
                      {"is_sparse": self._sparse, "is_distributed": False, "padding_idx": self._padding}, "Out",
                      dtype=self._dtype)


class LayerNorm(Layer):
    """Normalizes over the last dims."""

    def __init__(self, normalized_shape, scale=True, shift=True, epsilon=1e-05, param_attr=None, bias_attr=None, act=None,
                 dtype="float32"):
        super().__init__()
        self._shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self._epsilon, self._act, size = epsilon, act, math.prod(self._shape)
        self.weight = self.create_parameter([size], param_attr, dtype, False, Constant(1.0)) if scale else None
        self.bias = self.create_parameter([size], bias_attr, dtype, True) if shift else None

    def forward(self, input):
        begin = len(input.shape) - len(self._shape)
        if list(input.shape)[begin:] != self._shape:
            raise ValueError(f"Given normalized_shape is {self._shape}, expected input with shape [*, "
                             f"{', '.join(map(str, self._shape))}], but got input shape {list(input.shape)}")
        out = one_op("layer_norm", {"X": input, "Scale": self.weight, "Bias": self.bias},
                     {"epsilon": self._epsilon, "begin_norm_axis": begin}, "Y", "~Mean", "~Variance")
        return _activated(out, self._act)


class GroupNorm(Layer):
    """Normalizes groups of channels."""

    def __init__(self, channels, groups, epsilon=1e-05, param_attr=None, bias_attr=None, act=None, data_layout="NCHW",
                 dtype="float32"):
        super().__init__()
        if data_layout != "NCHW":
            raise ValueError("unsupported data layout:" + data_layout)
        self._groups, self._epsilon, self._act = groups, epsilon, act
        self.weight = self.create_parameter([channels], param_attr, dtype, False, Constant(1.0))
        self.bias = self.create_parameter([channels], bias_attr, dtype, True)

    def forward(self, input):
        out = one_op("group_norm", {"X": input, "Scale": self.weight, "Bias": self.bias},
                     {"epsilon": self._epsilon, "groups": self._groups}, "Y", "~Mean", "~Variance")
        return _activated(out, self._act)


class InstanceNorm(Layer):
    """Normalizes each channel of each image."""

    def __init__(self, num_channels, epsilon=1e-05, param_attr=None, bias_attr=None, dtype="float32"):
        super().__init__()
        if (param_attr is False) != (bias_attr is False):
            raise AssertionError("param_attr and bias_attr must be set to False at the same time in InstanceNorm")
        self._epsilon = epsilon
        self.scale = self.bias = None
        if param_attr is not False:
            self.scale = self.create_parameter([num_channels], param_attr, dtype, False, Constant(1.0))
            self.bias = self.create_parameter([num_channels], bias_attr, dtype, True)

    def forward(self, input):
        return one_op("instance_norm", {"X": input, "Scale": self.scale, "Bias": self.bias}, {"epsilon": self._epsilon}, "Y",
                      "~SavedMean", "~SavedVariance")


class GRUUnit(Layer):
    """(hidden, reset hidden, gates) of one step of a GRU."""

    def __init__(self, size, param_attr=None, bias_attr=None, activation="tanh", gate_activation="sigmoid",
                 origin_mode=False, dtype="float32"):
        super().__init__()
        kinds = {"identity": 0, "sigmoid": 1, "tanh": 2, "relu": 3}
        self._attrs = {"activation": kinds[activation], "gate_activation": kinds[gate_activation], "origin_mode": origin_mode}
        width = size // 3
        self.weight = self.create_parameter([width, 3 * width], param_attr, dtype)
        self.bias = self.create_parameter([1, 3 * width], bias_attr, dtype, True)

    def forward(self, input, hidden):
        gate, reset, updated = one_op("gru_unit", {"Input": input, "HiddenPrev": hidden, "Weight": self.weight,
                                                   "Bias": self.bias}, self._attrs, "Gate", "ResetHiddenPrev", "Hidden")
        return updated, reset, gate


class NCE(Layer):
    """Noise-contrastive estimation."""

    def __init__(self, num_total_classes, dim, sample_weight=None, param_attr=None, bias_attr=None, num_neg_samples=None,
                 sampler="uniform", custom_dist=None, seed=0, is_sparse=False, dtype="float32"):
        super().__init__()
        kinds = {"uniform": 0, "log_uniform": 1, "custom_dist": 2}
        if sampler not in kinds:
            raise Exception(f"Unsupported sampler type {sampler}.")
        self._weight_of_samples = sample_weight
        self._attrs = {"num_total_classes": num_total_classes, "num_neg_samples": num_neg_samples or 10, "seed": seed,
                       "sampler": kinds[sampler], "is_sparse": is_sparse}
        self._tables = {}
        if sampler == "custom_dist":
            keep, other = alias_table(custom_dist, num_total_classes)
            self._tables = {"CustomDistProbs": _core.to_tensor([float(p) for p in custom_dist], dtype="float32"),
                            "CustomDistAlias": _core.to_tensor(other, dtype="int32"),
                            "CustomDistAliasProbs": _core.to_tensor(keep, dtype="float32")}
        self.weight = self.create_parameter([num_total_classes, dim], param_attr, dtype)
        self.bias = self.create_parameter([num_total_classes, 1], bias_attr, dtype, True)

    def forward(self, input, label, sample_weight=None):
        check_variable_and_dtype(input, "input", ["float32", "float64"], "NCE")
        check_variable_and_dtype(label, "label", ["int64"], "NCE")
        check_type(sample_weight, "sample_weight", (Variable, type(None)), "NCE")
        of = self._weight_of_samples if sample_weight is None else sample_weight
        cost = one_op("nce", {"Input": input, "Label": label, "Weight": self.weight, "Bias": self.bias, "SampleWeight": of,
                              **self._tables}, self._attrs, "Cost",
                      "~SampleLogits", "~SampleLabels")
        return cost / (self._attrs["num_neg_samples"] + 1)


class TreeConv(Layer):
    """A convolution over the nodes of trees."""

    def __init__(self, feature_size, output_size, num_filters=1, max_depth=2, act="tanh", param_attr=None, bias_attr=None,
                 name=None, dtype="float32"):
        super().__init__()
        self._max_depth, self._act = max_depth, act
        self.weight = self.create_parameter([feature_size, 3, output_size, num_filters], param_attr, dtype)
        self.bias = self.create_parameter([num_filters], bias_attr, dtype, True) if bias_attr else None

    def forward(self, nodes_vector, edge_set):
        check_type(nodes_vector, "nodes_vector", Variable, "TreeConv")
        check_type(edge_set, "edge_set", Variable, "TreeConv")
        out = one_op("tree_conv", {"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": self.weight},
                     {"max_depth": self._max_depth}, "Out")
        return _activated(out if self.bias is None else _core.add(out, self.bias), self._act)


class PRelu(Layer):
    """x, or a learnt slope times x below zero."""

    def __init__(self, mode, channel=None, input_shape=None, param_attr=None, dtype="float32"):
        super().__init__()
        if mode not in ("all", "channel", "element"):
            raise AssertionError("mode should be one of all, channel, element.")
        shape = [1] if mode == "all" else [1, channel, 1, 1] if mode == "channel" else [1, *input_shape[1:]]
        self._mode = mode
        self.weight = self.create_parameter(shape, param_attr, dtype, False, Constant(1.0))

    def forward(self, input):
        return one_op("prelu", {"X": input, "Alpha": self.weight}, {"mode": self._mode}, "Out")


class BilinearTensorProduct(Layer):
    """x · weight[i] · yᵀ + bias, for each i."""

    def __init__(self, input1_dim, input2_dim, output_dim, name=None, act=None, param_attr=None, bias_attr=None,
                 dtype="float32"):
        super().__init__()
        self._act = act
        self.weight = self.create_parameter([output_dim, input1_dim, input2_dim], param_attr, dtype)
        self.bias = self.create_parameter([1, output_dim], bias_attr, dtype, True)

    def forward(self, x, y):
        out = one_op("bilinear_tensor_product", {"X": x, "Y": y, "Weight": self.weight, "Bias": self.bias}, {}, "Out")
        return _activated(out, self._act)


class RowConv(Layer):
    """A convolution over the steps that follow."""

    def __init__(self, name_scope, future_context_size, param_attr=None, act=None):
        super().__init__(name_scope)
        self._steps, self._attr, self._act, self.weight = future_context_size, param_attr, act, None

    def forward(self, input):
        if self.weight is None:
            self.weight = self.create_parameter([self._steps + 1, input.shape[1]], self._attr, get_default_dtype())
        return _activated(one_op("row_conv", {"X": input, "Filter": self.weight}, {}, "Out"), self._act)


class Flatten(Layer):
    """Some dims as one."""

    def __init__(self, start_axis=1, stop_axis=-1):
        super().__init__()
        self._axes = start_axis, stop_axis

    def forward(self, input):
        return _core.flatten(input, *self._axes)


def _parameter(name):
    """The property of a layer's parameter, which its class has as well."""
    def get(self):
        return self._parameters.get(name)

    def put(self, value):
        self._parameters[name] = value
    return property(get, put, doc=f"The layer's {name}.")


for _layer in (Conv2D, Conv3D, Conv2DTranspose, Conv3DTranspose, Linear, GRUUnit, NCE, BilinearTensorProduct):
    _layer.weight, _layer.bias = _parameter("weight"), _parameter("bias")
PRelu.weight = _parameter("weight")
