"""The quantization of 2.0 and 2.1: what paddle.quantization and paddle.static.quantization have, by its old names."""
from .....nn.quant.quant_layers import (FakeQuantAbsMax, MovingAverageAbsMaxScale, QuantizedConv2D, QuantizedLinear)
from .....nn.quant.quant_layers import FakeQuantChannelWiseAbsMax as FakeChannelWiseQuantDequantAbsMax
from .....nn.quant.quant_layers import FakeQuantMovingAverageAbsMax as FakeQuantMovingAverage
from .....quantization.imperative import ImperativePTQ, ImperativeQuantAware
from .....static.quantization import (AddQuantDequantPass, ConvertToInt8Pass, OutScaleForInferencePass,
                                      OutScaleForTrainingPass, PostTrainingQuantization, QuantizationFreezePass,
                                      QuantizationTransformPass, TransformForMobilePass, WeightQuantization)

__all__ = ["AddQuantDequantPass", "ConvertToInt8Pass", "FakeChannelWiseQuantDequantAbsMax", "FakeQuantAbsMax",
           "FakeQuantMovingAverage", "ImperativePTQ", "ImperativeQuantAware", "MovingAverageAbsMaxScale",
           "OutScaleForInferencePass", "OutScaleForTrainingPass", "PostTrainingQuantization", "QuantizationFreezePass",
           "QuantizationTransformPass", "QuantizedConv2D", "QuantizedLinear", "TransformForMobilePass", "WeightQuantization"]
