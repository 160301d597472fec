"""fluid.dygraph.layers: the base of layers."""
from ...nn import Layer

__all__ = ["Layer"]
