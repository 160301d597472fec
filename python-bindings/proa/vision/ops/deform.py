"""Deformable convolution (Dai et al., 2017; with a mask: Zhu et al., 2018)."""
from ... import _core
from ...nn import Layer
from ...nn.initializer.draw import of_convolution


def _pair(value, name, who="deform_conv2d"):
    if isinstance(value, int):
        return [value, value]
    pair = list(value)
    if len(pair) != 2 or not all(isinstance(v, int) for v in pair):
        raise ValueError(f"{who}: {name} must be an int or two, got {value!r}")
    return pair


def deform_conv2d(x, offset, weight, bias=None, stride=1, padding=0, dilation=1, deformable_groups=1, groups=1,
                  mask=None, name=None):
    """x [n, c, h, w], offset [n, 2·deformable_groups·kh·kw, oh, ow] (y before x at each kernel point), weight
    [out, c / groups, kh, kw], mask [n, deformable_groups·kh·kw, oh, ow] → [n, out, oh, ow]."""
    out = _core.deformable_conv(x, offset, weight, mask, _pair(stride, "stride"), _pair(padding, "padding"),
                                _pair(dilation, "dilation"), deformable_groups, groups)
    return out if bias is None else _core.add(out, _core.reshape(bias, [1, -1, 1, 1]))


class DeformConv2D(Layer):
    """deform_conv2d with a weight and a bias of its own; called with x, offset and, for version 2, mask."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, deformable_groups=1,
                 groups=1, weight_attr=None, bias_attr=None):
        super().__init__()
        if weight_attr is False:
            raise AssertionError("DeformConv2D: weight_attr must not be False")
        if in_channels == 0:
            raise AssertionError("DeformConv2D: in_channels must be above 0, got 0")
        if in_channels % groups:
            raise ValueError(f"DeformConv2D: in_channels ({in_channels}) must be a multiple of groups ({groups})")
        kernel = _pair(kernel_size, "kernel_size", "DeformConv2D")
        self._stride, self._padding, self._dilation = stride, padding, dilation
        self._deformable_groups, self._groups = deformable_groups, groups
        self.weight = self.create_parameter([out_channels, in_channels // groups, *kernel], weight_attr,
                                            default_initializer=of_convolution(kernel[0] * kernel[1] * in_channels))
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x, offset, mask=None):
        return deform_conv2d(x, offset, self.weight, self.bias, self._stride, self._padding, self._dilation,
                             self._deformable_groups, self._groups, mask)
