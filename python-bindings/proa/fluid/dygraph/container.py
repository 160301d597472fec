"""fluid.dygraph.container: layers of layers."""
from ...nn import LayerList, ParameterList, Sequential

__all__ = ["LayerList", "ParameterList", "Sequential"]
