"""fluid.layer_helper_base: the base of LayerHelper."""
from .layer_helper import LayerHelper as LayerHelperBase
