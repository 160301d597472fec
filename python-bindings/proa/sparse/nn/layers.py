"""Layers round the functions of paddle.sparse.nn.functional, and batch normalization of points."""
from ... import nn
from ...nn.functional._args import ints
from ...nn.functional._args import padding as padding_of
from ...nn.initializer.draw import of_convolution
from ..tensor import need_sparse
from . import functional as F


class ReLU(nn.Layer):
    """max(x, 0) of the stored values."""

    def __init__(self, name=None):
        super().__init__()

    def forward(self, x):
        return F.relu(x)


class ReLU6(ReLU):
    """min(max(x, 0), 6) of the stored values."""

    def forward(self, x):
        return F.relu6(x)


class LeakyReLU(nn.Layer):
    """x, or negative_slope·x where it is below 0, of the stored values."""

    def __init__(self, negative_slope=0.01, name=None):
        super().__init__()
        self._negative_slope = negative_slope

    def forward(self, x):
        return F.leaky_relu(x, self._negative_slope)


class Softmax(nn.Layer):
    """The softmax over the stored values of each row."""

    def __init__(self, axis=-1, name=None):
        super().__init__()
        self._axis = axis

    def forward(self, x):
        return F.softmax(x, self._axis)


class BatchNorm(nn.BatchNorm1D):
    """Batch normalization of the channels, the last dim, over the points that there are.

    >>> x = paddle.sparse.sparse_coo_tensor([[0, 0], [0, 1]], [[1.0], [3.0]], [1, 2, 1])
    >>> [round(v, 2) for v in paddle.sparse.nn.BatchNorm(1)(x).values().flatten().tolist()]
    [-1.0, 1.0]
    """

    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NDHWC",
                 use_global_stats=None, name=None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, "NC", use_global_stats, name)

    def forward(self, x):
        return need_sparse("BatchNorm", "x", x).with_values(super().forward(x.values()))


class SyncBatchNorm(BatchNorm):
    """BatchNorm, of one process."""

    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCHW",
                 name=None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr)

    @classmethod
    def convert_sync_batchnorm(cls, layer):
        """layer with every sparse BatchNorm in it replaced by a SyncBatchNorm of the same parameters."""
        if type(layer) is BatchNorm:
            made = cls(layer._num_features, layer._momentum, layer._epsilon)
            made.weight, made.bias, made._mean, made._variance = layer.weight, layer.bias, layer._mean, layer._variance
            return made
        for name, inner in layer.named_children():
            setattr(layer, name, cls.convert_sync_batchnorm(inner))
        return layer


class _Conv(nn.Layer):
    _dims, _function = 3, staticmethod(F.conv3d)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format=None):
        super().__init__()
        n = self._dims
        if padding_mode != "zeros":
            raise AssertionError(f"{type(self).__name__}: padding_mode must be 'zeros', got {padding_mode!r}")
        form = "NDHWC" if n == 3 else "NHWC"
        if groups != 1:
            raise AssertionError(f"{type(self).__name__}: groups must be 1, got {groups!r}")
        if data_format not in (None, form):
            raise ValueError(f"{type(self).__name__}: data_format must be '{form}', got {data_format!r}")
        who = type(self).__name__
        kernel = ints(kernel_size, n, who, "kernel_size")
        padding_of(padding, n, True, who)
        self._stride, self._dilation = ints(stride, n, who, "stride"), ints(dilation, n, who, "dilation")
        self._padding, self._groups = padding, groups
        self._data_format = form
        fan_in = in_channels
        for k in kernel:
            fan_in *= k
        self.weight = self.create_parameter(
            [*kernel, in_channels, out_channels], weight_attr,
            default_initializer=of_convolution(fan_in))
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x):
        return type(self)._function(x, self.weight, self.bias, self._stride, self._padding, self._dilation, self._groups,
                                    self._data_format)


class Conv3D(_Conv):
    """The convolution of points in space; a point wherever one is reached."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NDHWC"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode,
                         weight_attr, bias_attr, data_format)


class Conv2D(_Conv):
    """The convolution of points in a plane; a point wherever one is reached."""

    _dims, _function = 2, staticmethod(F.conv2d)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NHWC"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode,
                         weight_attr, bias_attr, data_format)


class SubmConv3D(_Conv):
    """Conv3D whose results are kept at x's points only."""

    _function = staticmethod(F.subm_conv3d)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", key=None, weight_attr=None, bias_attr=None, data_format="NDHWC"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode,
                         weight_attr, bias_attr, data_format)


class SubmConv2D(_Conv):
    """Conv2D whose results are kept at x's points only."""

    _dims, _function = 2, staticmethod(F.subm_conv2d)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", key=None, weight_attr=None, bias_attr=None, data_format="NHWC"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode,
                         weight_attr, bias_attr, data_format)


class MaxPool3D(nn.Layer):
    """The maxima of the points within each window."""

    def __init__(self, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NDHWC",
                 name=None):
        super().__init__()
        if return_mask:
            raise ValueError("MaxPool3D: return_mask must be False")
        self._options = (kernel_size, stride, padding, ceil_mode, data_format)

    def forward(self, x):
        return F.max_pool3d(x, *self._options)
