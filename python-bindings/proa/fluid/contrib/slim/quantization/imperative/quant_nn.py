"""Quantized layers, where 2.0 and 2.1 have them."""
from ......nn.quant.quant_layers import FakeQuantAbsMax, MovingAverageAbsMaxScale, QuantizedConv2D, QuantizedLinear
from ......nn.quant.quant_layers import FakeQuantChannelWiseAbsMax as FakeChannelWiseQuantDequantAbsMax
from ......nn.quant.quant_layers import FakeQuantMovingAverageAbsMax as FakeQuantMovingAverage

__all__ = ["FakeChannelWiseQuantDequantAbsMax", "FakeQuantAbsMax", "FakeQuantMovingAverage", "MovingAverageAbsMaxScale",
           "QuantizedConv2D", "QuantizedLinear"]
