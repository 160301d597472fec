"""Convolutions of 1, 2 and 3 spatial axes and their transposes: argument forms, then one op."""
from ... import _core
from ..._asks import ask, asks
from ..._errors import need_rank
from ._args import channel_last, ints
from ._args import padding as padding_of

KERNEL, KERNEL_OF_TRANSPOSE = "x,weight>>f4,f8", "x>>f4,f8>>weight"  # what chooses Paddle's


def _conv(op, who, n, x, weight, bias, stride, padding, dilation, groups, data_format):
    last = channel_last(data_format, n, who)
    try:
        pads, algorithm = padding_of(padding, n, last, who)
        return op(x, weight, bias, ints(stride, n, who, "stride"), pads, ints(dilation, n, who, "dilation"), groups,
                  data_format, algorithm)
    except Exception as error:
        need_rank(who, n + 2, x=x)
        ask(KERNEL, who, error, x=x, weight=weight)
        raise


def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCL", name=None):
    """Convolution of signals: x [N, C, L] or [N, L, C], weight [out, C / groups, k]."""
    return _conv(_core.conv1d, "conv1d", 1, x, weight, bias, stride, padding, dilation, groups, data_format)


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCHW", name=None):
    """Convolution of images: x [N, C, H, W] or [N, H, W, C], weight [out, C / groups, kh, kw]."""
    return _conv(_core.conv2d, "conv2d", 2, x, weight, bias, stride, padding, dilation, groups, data_format)


@asks("data_format=NCDHW|NDHWC")
def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCDHW", name=None):
    """Convolution of volumes: x [N, C, D, H, W] or [N, D, H, W, C], weight [out, C / groups, kd, kh, kw]."""
    return _conv(_core.conv3d, "conv3d", 3, x, weight, bias, stride, padding, dilation, groups, data_format)


def output_sizes(size, n, who):
    """The spatial sizes asked of a transposed convolution, as ints; tensors are read."""
    if isinstance(size, _core.Tensor):
        size = size.tolist()
        if isinstance(size, list) and len(size) == 1:
            size = size[0]
    if not isinstance(size, (int, list, tuple)):
        raise ValueError(f"{who}: output_size must be an int, ints or a Tensor of ints, got {size!r}")
    return ints(size, n, who, "output_size")


def _transposed(op, who, n, x, weight, bias, stride, padding, output_padding, groups, dilation, output_size,
                data_format):
    last = channel_last(data_format, n, who)
    try:
        pads, algorithm = padding_of(padding, n, last, who)
        stride = ints(stride, n, who, "stride")
        extra = () if output_padding == 0 else ints(output_padding, n, who, "output_padding")
        if output_size is None:
            size = ()
        elif extra:
            raise ValueError(f"{who}: give output_padding or output_size, not both")
        else:
            size = output_sizes(output_size, n, who)
        return op(x, weight, bias, stride, pads, extra, groups, ints(dilation, n, who, "dilation"), size, data_format,
                  algorithm)
    except Exception:
        need_rank(who, n + 2, x=x, weight=weight)
        raise


@asks(KERNEL_OF_TRANSPOSE)
def conv1d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1,
                     output_size=None, data_format="NCL", name=None):
    """The transpose of conv1d: weight [C, out / groups, k]."""
    return _transposed(_core.conv1d_transpose, "conv1d_transpose", 1, x, weight, bias, stride, padding,
                       output_padding, groups, dilation, output_size, data_format)


@asks(KERNEL_OF_TRANSPOSE)
def conv2d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1,
                     output_size=None, data_format="NCHW", name=None):
    """The transpose of conv2d: weight [C, out / groups, kh, kw]."""
    return _transposed(_core.conv2d_transpose, "conv2d_transpose", 2, x, weight, bias, stride, padding,
                       output_padding, groups, dilation, output_size, data_format)


@asks(KERNEL_OF_TRANSPOSE)
def conv3d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1,
                     output_size=None, data_format="NCDHW", name=None):
    """The transpose of conv3d: weight [C, out / groups, kd, kh, kw]."""
    return _transposed(_core.conv3d_transpose, "conv3d_transpose", 3, x, weight, bias, stride, padding,
                       output_padding, groups, dilation, output_size, data_format)
