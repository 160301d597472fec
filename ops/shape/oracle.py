"""The ops that rearrange elements (reshape, slice, concat, pad, roll, diagonal, …) in real Paddle. One function per
op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors, and saves the
outputs that it returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
import paddle

from paddle import broadcast_to, expand, expand_as, flip, reshape, stack, tile, transpose  # noqa: F401
from paddle import unbind, unsqueeze  # noqa: F401
from paddle import slice as _slice, strided_slice as _strided


def share_data(x):
    return x.detach()


def squeeze(x, axis):
    return paddle.squeeze(x, axis or None)


def flatten(x, start_axis, stop_axis):
    return paddle.flatten(x, start_axis, stop_axis)


def slice(input, axes, starts, ends, decrease_axis):
    if starts == [-1] and ends == [0] and decrease_axis:
        ends = [input.shape[axes[0]]]
    out = _slice(input, axes, starts, ends)
    return paddle.squeeze(out, decrease_axis) if decrease_axis else out


def strided_slice(x, axes, starts, ends, strides, decrease_axis):
    return _strided(x, axes, starts, ends, strides)


def concat(x, axis, axis_tensor):
    return paddle.concat(x, axis)


def split(x, sections, num, axis, axis_tensor):
    return paddle.split(x, sections or num, axis)


def unstack(x, axis, num):
    return paddle.unstack(x, axis)


def shape(input):
    return paddle.shape(input)


def size(x):
    return paddle.numel(x)


def pad(x, paddings, pad_value):
    return paddle.nn.functional.pad(x, paddings, value=pad_value)


def pad3d(x, paddings, mode, value, data_format):
    return paddle.nn.functional.pad(x, paddings, mode, value, data_format)


def roll(x, shifts, axis):
    return paddle.roll(x, shifts, axis or None)


def one_hot(x, num_classes, depth_tensor, dtype, allow_out_of_range):
    return paddle.nn.functional.one_hot(x, num_classes)


def meshgrid(inputs):
    return paddle.meshgrid(*inputs)


def diag(x, offset, padding_value):
    return paddle.diag(x, offset, padding_value)


def diagonal(x, offset, axis1, axis2):
    return paddle.diagonal(x, offset, axis1, axis2)


def diag_embed(input, offset, dim1, dim2):
    return paddle.diag_embed(input, offset, dim1, dim2)


def trace(x, offset, axis1, axis2):
    return paddle.trace(x, offset, axis1, axis2)


def fill_diagonal_tensor(x, y, offset, dim1, dim2):
    return paddle.Tensor.fill_diagonal_tensor(x, y, offset, dim1, dim2)


def fill_diagonal(x, value, offset, wrap):
    return paddle.Tensor.fill_diagonal_(x.clone(), value, offset, wrap)


def view_dtype(x, dtype):
    return x.view({"I32": "int32", "U8": "uint8", "F64": "float64"}[dtype])
