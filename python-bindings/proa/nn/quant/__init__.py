"""paddle.nn.quant: layers of quantized models."""
from . import qat
from .functional_layers import (FloatFunctionalLayer, add, concat, divide, flatten, matmul, multiply, reshape, subtract,
                                transpose)
from .quant_layers import QuantStub
from .quantized_linear import llm_int8_linear, weight_dequantize, weight_only_linear, weight_quantize
from .stub import Stub

__all__ = ["Stub", "weight_only_linear", "llm_int8_linear", "weight_quantize", "weight_dequantize"]
