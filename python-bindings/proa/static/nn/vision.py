"""Layers for images as functions that make their parameters: deformable convolution and the head of SSD."""
import math

from ..._asks import asks
from ... import _core
from ...framework import unique_name
from ...framework.dims import known
from ...framework.parameter import make_parameter
from ...nn.initializer.draw import of_convolution
from .common import conv2d

__all__ = ["deform_conv2d", "multi_box_head"]


@asks("x~f4,f8 offset~f4,f8 x#4")
def deform_conv2d(x, offset, mask, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=1,
                  deformable_groups=1, im2col_step=1, weight_attr=None, bias_attr=None, name=None):
    """Convolution whose sampling points are moved by offset and weighted by mask (None: the first version)."""
    from ...vision.ops import deform_conv2d as convolve
    owner = name if name is not None else unique_name.generate("deformable_conv")
    kernel = [filter_size] * 2 if isinstance(filter_size, int) else list(filter_size)
    channels = x.shape[1]
    if not known(channels) or channels < 1 or channels % groups:
        raise ValueError(f"deform_conv2d: the channels of x, {channels}, must be known and divisible by groups, {groups}")
    weight = make_parameter(owner, weight_attr, [num_filters, channels // groups, *kernel], x.dtype,
                            default_initializer=of_convolution(math.prod(kernel) * channels))
    bias = make_parameter(owner, bias_attr, [num_filters], x.dtype, is_bias=True)
    return convolve(x, offset, weight, bias, stride, padding, dilation, deformable_groups, groups, mask)


def _ratios(min_ratio, max_ratio, count, base_size):
    """The sizes of the boxes on each of count inputs, from shares of the image's size in percent."""
    step = int(math.floor((max_ratio - min_ratio) / (count - 2)))
    mins, maxs = [base_size * 0.1], [base_size * 0.2]
    for ratio in range(min_ratio, max_ratio + 1, step):
        mins.append(base_size * ratio / 100.0)
        maxs.append(base_size * (ratio + step) / 100.0)
    return mins, maxs


def multi_box_head(inputs, image, base_size, num_classes, aspect_ratios, min_ratio=None, max_ratio=None, min_sizes=None,
                   max_sizes=None, steps=None, step_w=None, step_h=None, offset=0.5, variance=(0.1, 0.1, 0.2, 0.2),
                   flip=True, clip=False, kernel_size=1, pad=0, stride=1, name=None, min_max_aspect_ratios_order=False):
    """The head of an SSD detector (Liu et al., 2016): from feature maps, box offsets [N, boxes, 4], class scores
    [N, boxes, classes], and the prior boxes and their variances [boxes, 4]."""
    from ...vision.ops import prior_box
    count = len(inputs)
    if min_sizes is None:
        if count < 3:
            raise ValueError(f"multi_box_head: give min_sizes and max_sizes for {count} inputs; ratios need at least 3")
        min_sizes, max_sizes = _ratios(min_ratio, max_ratio, count, base_size)
    for what, value in (("aspect_ratios", aspect_ratios), ("min_sizes", min_sizes), ("max_sizes", max_sizes)):
        if value is not None and len(value) != count:
            raise ValueError(f"multi_box_head: {what} must have an entry for each of the {count} inputs, got {len(value)}")
    step_w, step_h = (steps, steps) if steps else (step_w, step_h)
    locations, scores, boxes, variances = [], [], [], []
    for i, x in enumerate(inputs):
        box, spread = prior_box(x, image, min_sizes[i], max_sizes[i] if max_sizes is not None else None, aspect_ratios[i],
                                variance, flip, clip, (step_w[i] if step_w else 0, step_h[i] if step_h else 0), offset,
                                min_max_aspect_ratios_order)
        boxes.append(_core.reshape(box, [-1, 4]))
        variances.append(_core.reshape(spread, [-1, 4]))
        for found, width in ((locations, 4), (scores, num_classes)):
            out = conv2d(x, box.shape[2] * width, kernel_size, stride, pad)
            found.append(_core.reshape(_core.transpose(out, [0, 2, 3, 1]), [0, -1, width]))
    return (_core.concat(locations, 1), _core.concat(scores, 1), _core.concat(boxes, 0), _core.concat(variances, 0))
