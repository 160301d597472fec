"""paddle.static.quantization: quantization of programs and saved models."""
from ...quantization.imperative import ImperativePTQ, ImperativeQuantAware
from .post_training_quantization import PostTrainingQuantization, PostTrainingQuantizationProgram, WeightQuantization
from .quantization_pass import (AddQuantDequantPass, ConvertToInt8Pass, OutScaleForInferencePass, OutScaleForTrainingPass,
                                QuantizationFreezePass, QuantizationTransformPass, TransformForMobilePass)
from .quanter import convert, quant_aware
