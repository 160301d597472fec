"""Convolution layers: sizes and padding are brought to the ops' form once, forward is one op."""
from ... import _core
from ..._asks import ask, asks
from ..._errors import need_rank, of_kind
from .. import functional as F
from ..functional._args import ints
from ..functional._args import padding as padding_of
from ..functional.conv import KERNEL, KERNEL_OF_TRANSPOSE, output_sizes
from ..initializer.draw import of_convolution
from .layers import Layer

_FORMATS = ("NCL", "NLC", "NCHW", "NHWC", "NCDHW", "NDHWC")


class _ConvNd(Layer):
    """Base of all convolutions; a subclass says _dims, _op and _transposed."""

    _dims, _op, _transposed = 2, None, False

    @asks("padding_mode{} data_format{}")
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode,
                 output_padding, weight_attr, bias_attr, data_format):
        super().__init__()
        who, n = type(self).__name__, self._dims
        if weight_attr is False:
            raise AssertionError(f"{who}: weight_attr must not be False")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"{who}: padding_mode must be 'zeros', 'reflect', 'replicate' or 'circular', got "
                             f"{padding_mode!r}")
        if padding_mode != "zeros" and not isinstance(padding, int):
            raise TypeError(f"{who}: padding must be an int with padding_mode '{padding_mode}', got {padding!r}")
        if data_format not in _FORMATS:
            raise ValueError(f"{who}: data_format must be one of {', '.join(_FORMATS)}, got {data_format!r}")
        if not self._transposed and in_channels % groups:
            raise ValueError(f"{who}: in_channels must be divisible by groups, got {in_channels} and {groups}")
        self._in_channels = in_channels
        self._out_channels = out_channels
        self._groups = groups
        self._param_attr = weight_attr
        self._bias_attr = bias_attr
        self._data_format = data_format
        if any(isinstance(k, bool) for k in (kernel_size if isinstance(kernel_size, (list, tuple)) else [kernel_size])):
            raise of_kind(f"{who}: kernel_size must be an int or {n} ints, got {kernel_size!r}")
        self._kernel_size = ints(kernel_size, n, who, "kernel_size")
        self._stride = ints(stride, n, who, "stride")
        self._dilation = ints(dilation, n, who, "dilation")
        self._padding = padding
        self._padding_mode = padding_mode
        self.output_padding = output_padding
        self._extra = () if output_padding == 0 else ints(output_padding, n, who, "output_padding")
        inside = padding if padding_mode == "zeros" else 0
        self._updated_padding, self._padding_algorithm = padding_of(inside, n, data_format[-1] == "C", who)
        self._outside = None if padding_mode == "zeros" else [padding] * (2 * n)
        shape = ([in_channels, out_channels // groups] if self._transposed
                 else [out_channels, in_channels // groups]) + self._kernel_size
        fan = in_channels
        for k in self._kernel_size:
            fan *= k
        self.weight = self.create_parameter(
            shape, weight_attr, default_initializer=None if self._transposed else of_convolution(fan))
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x):
        if self._outside is not None:
            x = F.pad(x, self._outside, self._padding_mode, 0.0, self._data_format)
        try:
            return self._op(x, self.weight, self.bias, self._stride, self._updated_padding, self._dilation, self._groups,
                            self._data_format, self._padding_algorithm)
        except Exception as error:
            if self._dims == 1:  # of images and volumes the op says it
                need_rank(type(self).__name__, 3, x=x)
            ask(KERNEL, type(self).__name__, error, x=x, weight=self.weight)
            raise

    def extra_repr(self):
        n = self._dims
        text = f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"
        for what, value, usual in (("stride", self._stride, [1] * n), ("padding", self._padding, 0),
                                   ("padding_mode", self._padding_mode, "zeros"),
                                   ("output_padding", self.output_padding, 0),
                                   ("dilation", self._dilation, [1] * n), ("groups", self._groups, 1)):
            if value != usual:
                text += f", {what}={value}"
        return f"{text}, data_format={self._data_format}"


class _ConvTransposeNd(_ConvNd):
    _transposed = True

    def forward(self, x, output_size=None):
        size, extra = (), self._extra
        if output_size is not None:
            size, extra = output_sizes(output_size, self._dims, type(self).__name__), ()
        try:
            return self._op(x, self.weight, self.bias, self._stride, self._updated_padding, extra, self._groups,
                            self._dilation, size, self._data_format, self._padding_algorithm)
        except Exception as error:
            need_rank(type(self).__name__, self._dims + 2, x=x)
            ask(KERNEL_OF_TRANSPOSE, type(self).__name__, error, x=x, weight=self.weight)
            raise


class Conv1D(_ConvNd):
    """Convolution of signals with learnt filters."""

    _dims, _op = 1, staticmethod(_core.conv1d)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NCL"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode, 0,
                         weight_attr, bias_attr, data_format)


class Conv2D(_ConvNd):
    """Convolution of images with learnt filters."""

    _dims, _op = 2, staticmethod(_core.conv2d)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NCHW"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode, 0,
                         weight_attr, bias_attr, data_format)


class Conv3D(_ConvNd):
    """Convolution of volumes with learnt filters."""

    _dims, _op = 3, staticmethod(_core.conv3d)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NCDHW"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode, 0,
                         weight_attr, bias_attr, data_format)


class Conv1DTranspose(_ConvTransposeNd):
    """The transpose of Conv1D."""

    _dims, _op = 1, staticmethod(_core.conv1d_transpose)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 dilation=1, weight_attr=None, bias_attr=None, data_format="NCL"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, "zeros",
                         output_padding, weight_attr, bias_attr, data_format)


class Conv2DTranspose(_ConvTransposeNd):
    """The transpose of Conv2D."""

    _dims, _op = 2, staticmethod(_core.conv2d_transpose)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1,
                 groups=1, weight_attr=None, bias_attr=None, data_format="NCHW"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, "zeros",
                         output_padding, weight_attr, bias_attr, data_format)


class Conv3DTranspose(_ConvTransposeNd):
    """The transpose of Conv3D."""

    _dims, _op = 3, staticmethod(_core.conv3d_transpose)

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1,
                 groups=1, weight_attr=None, bias_attr=None, data_format="NCDHW"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, "zeros",
                         output_padding, weight_attr, bias_attr, data_format)
