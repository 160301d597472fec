"""Deformable convolution (Dai et al., 2017; with a mask: Zhu et al., 2018): samples between pixels, then a product."""
from ... import _core
from ...framework.dims import differ, known
from ...nn import Layer
from ...nn.initializer import Normal
from ...tensor import arange


def _pair(value, name, who="deform_conv2d"):
    if isinstance(value, int):
        return [value, value]
    pair = list(value)
    if len(pair) != 2 or not all(isinstance(v, int) for v in pair):
        raise ValueError(f"{who}: {name} must be an int or two, got {value!r}")
    return pair


def sampled(x, y, xs):
    """The values of x [..., channels, height·width seen as `size`] at places y, xs [..., n]: bilinear, 0 outside.

    x: [batch, parts, channels, height, width]; y and xs: [batch, parts, n]. Result [batch, parts, channels, n].
    """
    batch, parts, channels, height, width = x.shape
    flat = x.reshape([batch, parts, channels, height * width])
    top, left = y.floor().detach(), xs.floor().detach()
    below, right = y - top, xs - left  # at whole positions a slope is towards the next pixel, as Paddle's
    inside = ((y > -1) & (y < height) & (xs > -1) & (xs < width)).astype(x.dtype)
    total = None
    for dy in (0, 1):
        for dx in (0, 1):
            row, column = top + dy, left + dx
            weight = (below if dy else 1 - below) * (right if dx else 1 - right) * inside
            weight = weight * ((row >= 0) & (row < height) & (column >= 0) & (column < width)).astype(x.dtype)
            place = (row.clip(0, height - 1) * width + column.clip(0, width - 1)).detach().astype("int64")
            place = place.unsqueeze(2).expand([batch, parts, channels, place.shape[-1]])
            part = flat.take_along_axis(place, -1) * weight.unsqueeze(2)
            total = part if total is None else total + part
    return total


def deform_conv2d(x, offset, weight, bias=None, stride=1, padding=0, dilation=1, deformable_groups=1, groups=1,
                  mask=None, name=None):
    """x [n, c, h, w], offset [n, 2·deformable_groups·kh·kw, oh, ow] (y before x at each kernel point), weight
    [out, c / groups, kh, kw], mask [n, deformable_groups·kh·kw, oh, ow] → [n, out, oh, ow]."""
    stride, padding, dilation = _pair(stride, "stride"), _pair(padding, "padding"), _pair(dilation, "dilation")
    n, channels, height, width = x.shape
    out, per_group, kh, kw = weight.shape
    oh, ow = ((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, p, d, k, s in (
        (height, padding[0], dilation[0], kh, stride[0]), (width, padding[1], dilation[1], kw, stride[1])))
    points, parts = kh * kw, deformable_groups
    if differ(offset.shape, [n, 2 * parts * points, oh, ow]):
        raise ValueError(f"deform_conv2d: offset must have shape {[n, 2 * parts * points, oh, ow]}, got {offset.shape}")
    if differ(channels, per_group * groups) or known(channels) and channels % parts:
        raise ValueError(f"deform_conv2d: x has {channels} channels, which must be {per_group} of weight times groups "
                         f"({groups}), and a multiple of deformable_groups ({parts})")
    offset = offset.reshape([n, parts, points, 2, oh, ow])
    dtype = x.dtype
    rows = arange(oh, dtype=dtype).reshape([1, 1, 1, oh, 1]) * stride[0] - padding[0]
    columns = arange(ow, dtype=dtype).reshape([1, 1, 1, 1, ow]) * stride[1] - padding[1]
    point = arange(points, dtype="int64")
    rows = rows + ((point // kw).astype(dtype) * dilation[0]).reshape([1, 1, points, 1, 1]) + offset[:, :, :, 0]
    columns = columns + ((point % kw).astype(dtype) * dilation[1]).reshape([1, 1, points, 1, 1]) + offset[:, :, :, 1]
    places = [n, parts, points * oh * ow]
    values = sampled(x.reshape([n, parts, channels // parts, height, width]), rows.reshape(places),
                     columns.reshape(places))
    if mask is not None:
        values = values * mask.reshape([n, parts, 1, points * oh * ow])
    values = values.reshape([n, groups, per_group * points, oh * ow])
    kernel = weight.reshape([1, groups, out // groups, per_group * points])
    result = _core.matmul(kernel, values).reshape([n, out, oh, ow])
    return result if bias is None else result + bias.reshape([1, out, 1, 1])


class DeformConv2D(Layer):
    """deform_conv2d with a weight and a bias of its own; called with x, offset and, for version 2, mask."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, deformable_groups=1,
                 groups=1, weight_attr=None, bias_attr=None):
        super().__init__()
        if weight_attr is False:
            raise AssertionError("DeformConv2D: weight_attr must not be False")
        if in_channels % groups:
            raise ValueError(f"DeformConv2D: in_channels ({in_channels}) must be a multiple of groups ({groups})")
        kernel = _pair(kernel_size, "kernel_size", "DeformConv2D")
        self._stride, self._padding, self._dilation = stride, padding, dilation
        self._deformable_groups, self._groups = deformable_groups, groups
        spread = (2.0 / (kernel[0] * kernel[1] * in_channels)) ** 0.5
        self.weight = self.create_parameter([out_channels, in_channels // groups, *kernel], weight_attr,
                                            default_initializer=Normal(0.0, spread))
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x, offset, mask=None):
        return deform_conv2d(x, offset, self.weight, self.bias, self._stride, self._padding, self._dilation,
                             self._deformable_groups, self._groups, mask)
