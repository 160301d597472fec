"""A convolution whose input and filter are quantized."""
from ... import functional as F
from .base import QuantedLayer


def convolution_of(layer):
    """The attributes of a convolution that its quantized form needs."""
    names = ("_groups", "_stride", "_padding", "_padding_mode", "_dilation", "_data_format", "_outside", "output_padding")
    return {name: getattr(layer, name) for name in names}


def convolve(layer, x, weight):
    """conv2d with the attributes of a layer, of a weight that is not its own."""
    inside = layer._padding
    if layer._outside is not None:
        x, inside = F.pad(x, layer._outside, layer._padding_mode, 0.0, layer._data_format), 0
    return F.conv2d(x, weight, layer.bias, layer._stride, inside, layer._dilation, layer._groups, layer._data_format)


class QuantedConv2D(QuantedLayer):
    """Conv2D of quantized inputs and filters."""

    def __init__(self, layer, q_config):
        super().__init__(layer, q_config)
        self.__dict__.update(convolution_of(layer))

    def _compute(self, x, weight):
        return convolve(self, x, weight)
