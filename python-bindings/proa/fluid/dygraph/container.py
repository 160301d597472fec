"""fluid.dygraph.container: Sequential, LayerList and ParameterList, re-exported from paddle.nn."""
from ...nn import LayerList, ParameterList, Sequential

__all__ = ["LayerList", "ParameterList", "Sequential"]
