"""fluid.dygraph.layer_object_helper: LayerObjectHelper, the helper through which a 2.0 layer makes parameters and
appends operators."""
from ..layer_helper import LayerObjectHelper
