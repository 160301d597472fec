"""fluid.dygraph.container: layers of layers."""
from ...nn import LayerList, ParameterList, Sequential  # noqa: F401

__all__ = ["LayerList", "ParameterList", "Sequential"]
