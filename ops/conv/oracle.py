"""1-D to 3-D convolutions and transposed convolutions in real Paddle. One function per op, named as the op:
tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors, and saves the outputs that it
returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
from paddle.nn import functional as F

FORMATS = {1: {"NCHW": "NCL"}, 2: {}, 3: {"NCHW": "NCDHW"}}


def _format(n, data_format):
    return FORMATS[n].get(data_format, data_format)


def _padding(padding, algorithm):
    return list(padding) if algorithm == "EXPLICIT" else algorithm


def _conv(n, f, x, weight, bias, stride, padding, dilation, groups, data_format, padding_algorithm):
    return f(x, weight, bias, list(stride), _padding(padding, padding_algorithm), list(dilation), groups,
             _format(n, data_format))


def conv1d(**fields):
    return _conv(1, F.conv1d, **fields)


def conv2d(**fields):
    return _conv(2, F.conv2d, **fields)


def conv3d(**fields):
    return _conv(3, F.conv3d, **fields)


def _transpose(n, f, x, weight, bias, stride, padding, output_padding, groups, dilation, output_size, data_format,
               padding_algorithm):
    return f(x, weight, bias, stride=list(stride), padding=_padding(padding, padding_algorithm),
             output_padding=list(output_padding) or 0, groups=groups, dilation=list(dilation),
             output_size=list(output_size) or None, data_format=_format(n, data_format))


def conv1d_transpose(**fields):
    return _transpose(1, F.conv1d_transpose, **fields)


def conv2d_transpose(**fields):
    return _transpose(2, F.conv2d_transpose, **fields)


def conv3d_transpose(**fields):
    return _transpose(3, F.conv3d_transpose, **fields)
