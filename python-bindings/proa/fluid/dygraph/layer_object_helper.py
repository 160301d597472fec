"""fluid.dygraph.layer_object_helper: the helper that a layer has."""
from ..layer_helper import LayerObjectHelper
