"""The image ops interpolate, grid_sample, affine_grid, pixel shuffles, unfold, fold and maxout in real Paddle. One
function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors,
and saves the outputs that it returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
import paddle.nn.functional as F
from paddle.nn.functional import affine_grid, grid_sample, maxout  # noqa: F401

LAYOUT = {"NCL": "NCW", "NLC": "NWC"}


def interpolate(x, size, scale, mode, align_corners, align_mode, data_format):
    return F.interpolate(x, size or None, (scale if len(scale) > 1 else scale[0]) if scale else None, mode, align_corners,
                         align_mode, LAYOUT.get(data_format, data_format))


def pixel_shuffle(x, upscale_factor, data_format):
    return F.pixel_shuffle(x, upscale_factor, data_format)


def pixel_unshuffle(x, downscale_factor, data_format):
    return F.pixel_unshuffle(x, downscale_factor, data_format)


def channel_shuffle(x, groups, data_format):
    return F.channel_shuffle(x, groups, data_format)


def temporal_shift(x, seg_num, shift_ratio, data_format):
    return F.temporal_shift(x, seg_num, shift_ratio, data_format=data_format)


def unfold(x, kernel_sizes, strides, paddings, dilations):
    return F.unfold(x, kernel_sizes, strides, paddings, dilations)


def fold(x, output_sizes, kernel_sizes, strides, paddings, dilations):
    return F.fold(x, output_sizes, kernel_sizes, strides, paddings, dilations)
