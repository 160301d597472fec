"""PTQRegistry: the layer types that ImperativePTQ observes, and those that it quantizes."""
from ... import nn
from ...nn import quant
from ...nn.quant import quant_layers

__all__ = ["PTQRegistry"]

_OBSERVED = [nn.Conv2D, nn.Linear, nn.BatchNorm2D, nn.AdaptiveMaxPool2D, nn.AdaptiveAvgPool2D, nn.AvgPool2D, nn.MaxPool2D,
             nn.ReLU, nn.ReLU6, nn.Hardswish, nn.Swish, nn.Sigmoid, nn.Softmax, nn.Tanh, quant.add]
_QUANTIZED = [quant_layers.QuantizedConv2D, quant_layers.QuantizedLinear]
_SIMULATED = [nn.Conv2D, nn.Linear]


def _is(layer, kinds):
    return layer in kinds if isinstance(layer, type) else isinstance(layer, tuple(kinds))


class PTQRegistry:
    """Questions about layers, or their classes."""

    @classmethod
    def is_supported_layer(cls, layer):
        """Whether its output is observed."""
        return _is(layer, _OBSERVED)

    @classmethod
    def is_registered_layer(cls, layer):
        """Whether it is observed, or was quantized."""
        return _is(layer, _OBSERVED + _QUANTIZED)

    @classmethod
    def is_simulated_quant_layer(cls, layer):
        """Whether its input and weight are quantized."""
        return _is(layer, _SIMULATED)
