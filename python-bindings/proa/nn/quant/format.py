"""Layers of the exported form: quantize_linear and dequantize_linear with scales that are fixed."""
import abc

from ... import _core
from ...framework import ParamAttr, unique_name
from ..initializer import Constant
from ..layer.layers import Layer

__all__ = ["ConvertibleQuantedLayer", "LinearDequanter", "LinearQuanter", "LinearQuanterDequanter"]


class _Linear(Layer):
    """Scales, as a parameter without gradient, and how they go along a tensor. Scales of two axes are of groups of rows."""

    def __init__(self, scales, zero_point=None, quant_axis=None, bit_length=8, group_size=128):
        super().__init__()
        from ... import to_tensor, zeros
        scales = to_tensor(scales, dtype="float32").detach()
        scales = scales.reshape([1]) if not scales.shape else scales
        attr = ParamAttr(name=unique_name.generate("quant_dequant.scale"), initializer=Constant(1.0), trainable=False)
        self._scales = self.create_parameter(scales.shape, attr, "float32")
        self._scales.set_value(scales)
        self._zero_point = zeros([1], "float32") if zero_point is None else to_tensor(zero_point)
        self._quant_axis = -1 if quant_axis is None else quant_axis
        self._bit_length = bit_length
        self._group_size = group_size

    @classmethod
    def from_quanter(cls, quanter):
        """The layer with the scales that a quanter or an observer has found."""
        return cls(quanter.scales(), quanter.zero_points(), quanter.quant_axis(), quanter.bit_length())

    def _by_row(self):
        from ... import repeat_interleave
        return repeat_interleave(self._scales, self._group_size, 0)

    @property
    def _range(self):
        return (1 << (self._bit_length - 1)) - 1


class LinearQuanter(_Linear):
    """Integers of its input by fixed scales."""

    def forward(self, input):
        from ... import clip
        if len(self._scales.shape) > 1:
            n = self._range
            return clip((input.cast("float32") / self._by_row() * n).round(), -n - 1, n).cast(input.dtype)
        return _core.quantize_linear(input.cast("float32"), self._scales, self._zero_point, quant_axis=self._quant_axis,
                                     bit_length=self._bit_length).cast(input.dtype)


class LinearDequanter(_Linear):
    """Back from integers, by fixed scales."""

    def forward(self, input):
        if len(self._scales.shape) > 1:
            return (input.cast("float32") / self._range * self._by_row()).cast(input.dtype)
        return _core.dequantize_linear(input.cast("float32"), self._scales, self._zero_point, quant_axis=self._quant_axis,
                                       bit_length=self._bit_length).cast(input.dtype)


class LinearQuanterDequanter(Layer):
    """A quanter, then a dequanter; either may be None."""

    def __init__(self, quanter, dequanter):
        super().__init__()
        self._quanter, self._dequanter = quanter, dequanter

    def forward(self, input):
        out = input if self._quanter is None else self._quanter(input)
        return out if self._dequanter is None else self._dequanter(out)

    @staticmethod
    def from_quanter(quanter):
        """The pair with the scales that a quanter or an observer has found."""
        return LinearQuanterDequanter(LinearQuanter.from_quanter(quanter), LinearDequanter.from_quanter(quanter))


class ConvertibleQuantedLayer(Layer, metaclass=abc.ABCMeta):
    """A layer whose quantizers can be replaced by those of the exported form. A subclass names its weights and quanters."""

    def __init__(self):
        super().__init__()
        self.converted = False

    @abc.abstractmethod
    def weights_to_quanters(self):
        """[(name of a weight, name of its quanter)]: the weights are kept as integers afterwards."""

    @abc.abstractmethod
    def activation_quanters(self):
        """[name of a quanter of activations]."""

    def _convert_quanter_to_qdq(self, name):
        if not hasattr(self, name):
            raise AssertionError(f"{type(self).__name__} has no quanter {name!r}")
        quanter = getattr(self, name)
        if quanter is None:
            return None
        pair = LinearQuanterDequanter.from_quanter(quanter)
        setattr(self, name, pair)
        return pair

    def _convert(self, remain_weight=False):
        """Puts fixed quantizers in place, and integers into the weights unless they remain."""
        if self.converted:
            raise AssertionError(f"{type(self).__name__} was converted before: convert a model once")
        for weight_name, quanter_name in self.weights_to_quanters():
            pair = self._convert_quanter_to_qdq(quanter_name)
            if pair is None or remain_weight:
                continue
            weight = getattr(self, weight_name)
            weight.set_value(pair._quanter(weight))
            pair._quanter = None
        for quanter_name in self.activation_quanters():
            self._convert_quanter_to_qdq(quanter_name)
        self.converted = True
