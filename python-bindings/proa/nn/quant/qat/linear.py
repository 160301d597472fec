"""A linear layer whose input and weight are quantized."""
from ... import functional as F
from .base import QuantedLayer


class QuantedLinear(QuantedLayer):
    """Linear of quantized inputs and weights."""

    def __init__(self, layer, q_config):
        super().__init__(layer, q_config)
        self.name = layer.name

    def _compute(self, x, weight):
        return F.linear(x, weight, self.bias)
