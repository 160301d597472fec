"""fluid.dygraph.layers: Layer, re-exported from paddle.nn."""
from ...nn import Layer

__all__ = ["Layer"]
