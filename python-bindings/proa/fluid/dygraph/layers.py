"""fluid.dygraph.layers: the base of layers."""
from ...nn import Layer  # noqa: F401

__all__ = ["Layer"]
