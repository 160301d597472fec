"""FakeQuanterWithAbsMaxObserver: a fake quantizer whose scale is a moving average of largest magnitudes."""
from ...nn.quant.quant_layers import FakeQuantMovingAverageAbsMax
from ..base_quanter import BaseQuanter
from ..factory import QuanterFactory

__all__ = ["FakeQuanterWithAbsMaxObserver", "FakeQuanterWithAbsMaxObserverLayer"]


class FakeQuanterWithAbsMaxObserver(QuanterFactory):
    """Factory of quanters with scale = accum / state, where training moves state = moving_rate · state + 1 and
    accum = moving_rate · accum + max |x|."""

    def __init__(self, moving_rate=0.9, bit_length=8, dtype="float32", name=None):
        super().__init__(name=name, moving_rate=moving_rate, bit_length=bit_length, dtype=dtype)

    def _get_class(self):
        return FakeQuanterWithAbsMaxObserverLayer


class FakeQuanterWithAbsMaxObserverLayer(FakeQuantMovingAverageAbsMax, BaseQuanter):
    """x on the grid of the moving average, which training moves. The gradient passes straight through."""

    def __init__(self, layer, name=None, moving_rate=0.9, bit_length=8, dtype="float32"):
        super().__init__(name, moving_rate, bit_length, dtype)

    def bit_length(self):
        return self._quant_bits

    def quant_axis(self):
        return -1

    def scales(self):
        return self._scale

    def zero_points(self):
        return None
