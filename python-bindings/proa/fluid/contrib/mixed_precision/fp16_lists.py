"""fluid.contrib.mixed_precision.fp16_lists: which operators compute in half precision."""
from ....static.amp import AutoMixedPrecisionLists, CustomOpLists

__all__ = ["AutoMixedPrecisionLists", "CustomOpLists"]
