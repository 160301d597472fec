"""Group-wise weight observer: for each column of a weight, one scale (the largest magnitude) a group of its rows."""
from ..base_observer import BaseObserver
from ..factory import ObserverFactory

__all__ = ["GroupWiseWeightObserver", "GroupWiseWeightObserverLayer"]


class GroupWiseWeightObserver(ObserverFactory):
    """Factory of observers of weights [in, out] by groups of group_size (64 or 128) rows."""

    def __init__(self, quant_bits=8, group_size=128):
        super().__init__(quant_bits=quant_bits, group_size=group_size)

    def _get_class(self):
        return GroupWiseWeightObserverLayer


class GroupWiseWeightObserverLayer(BaseObserver):
    """Largest magnitudes [in / group_size, out] of the weight that passed last."""

    def __init__(self, layer, quant_bits=8, group_size=128):
        super().__init__()
        if group_size not in (64, 128):
            raise AssertionError(f"GroupWiseWeightObserver: group_size must be 64 or 128, got {group_size}")
        self.quant_bits, self.group_size = quant_bits, group_size
        self._layer = layer
        self._max = self._scale = self._zero_point = None

    def forward(self, inputs):
        shape = inputs.shape
        if len(shape) != 2 or shape[0] % self.group_size:
            raise AssertionError(f"GroupWiseWeightObserver: expected [in, out] with in a multiple of {self.group_size}, got "
                                 f"{shape}")
        grouped = inputs.detach().reshape([shape[0] // self.group_size, self.group_size, shape[1]])
        most = grouped.abs().max(1).cast("float32")
        self._max = most + (most == 0).cast("float32") * 1e-8
        return inputs

    def min_value(self):
        """0: grids are symmetric."""
        return 0.0

    def max_value(self):
        """The largest magnitudes."""
        return self._max

    def bit_length(self):
        return self.quant_bits

    def quant_axis(self):
        return -1

    def cal_thresholds(self):
        from ... import zeros_like
        if self._scale is None:
            self._scale = self._max
        self._zero_point = zeros_like(self._scale)

    def scales(self):
        if self._scale is None:
            self.cal_thresholds()
        return self._scale

    def zero_points(self):
        if self._zero_point is None:
            self.cal_thresholds()
        return self._zero_point
