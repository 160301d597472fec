"""fluid.layer_helper_base: LayerHelperBase, an alias of LayerHelper."""
from .layer_helper import LayerHelper as LayerHelperBase
