"""The base of quanters: layers that simulate quantization, and know its scales."""
import abc

from ..nn import Layer

__all__ = ["BaseQuanter"]


class BaseQuanter(Layer, metaclass=abc.ABCMeta):
    """A layer that rounds a tensor to a grid. A subclass defines forward and what the grid is."""

    @abc.abstractmethod
    def forward(self, input):
        """The input on the grid."""

    @abc.abstractmethod
    def scales(self):
        """The largest magnitudes that the grid shows; None before any was seen."""

    @abc.abstractmethod
    def zero_points(self):
        """The integers of zero; None: 0."""

    @abc.abstractmethod
    def quant_axis(self):
        """The axis along which there is a scale for each index; −1 or None: one scale."""

    @abc.abstractmethod
    def bit_length(self):
        """The bits of an integer."""
