"""AbsmaxObserver: the scale is the largest magnitude of all tensors observed."""
from ..base_observer import BaseObserver
from ..factory import ObserverFactory

__all__ = ["AbsmaxObserver", "AbsmaxObserverLayer"]


class AbsmaxObserver(ObserverFactory):
    """Factory of observers of the largest magnitude; integers have quant_bits bits."""

    def __init__(self, quant_bits=8):
        super().__init__(quant_bits=quant_bits)

    def _get_class(self):
        return AbsmaxObserverLayer


class AbsmaxObserverLayer(BaseObserver):
    """The largest magnitude of all tensors that passed, at least 1e-7."""

    INIT_ABS_MAX = 1e-7

    def __init__(self, layer, quant_bits=8):
        super().__init__()
        from ... import to_tensor
        self._quant_bits = quant_bits
        self.abs_max_val = to_tensor(self.INIT_ABS_MAX, dtype="float32")

    def forward(self, input):
        from ... import maximum
        self.abs_max_val = maximum(input.detach().abs().max(), self.abs_max_val)
        return input

    def cal_thresholds(self):
        self.thresholds = self.abs_max_val

    def bit_length(self):
        return self._quant_bits

    def quant_axis(self):
        return -1

    def scales(self):
        return self.abs_max_val

    def zero_points(self):
        return None
