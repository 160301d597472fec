"""fluid.contrib.mixed_precision: paddle.static.amp under its name of 1.x."""
from ....static.amp import (AutoMixedPrecisionLists, CustomOpLists, bf16, cast_model_to_fp16, cast_parameters_to_fp16, decorate,
                            fp16_guard)
from ....static.amp import amp_nn

__all__ = ["AutoMixedPrecisionLists", "CustomOpLists", "amp_nn", "bf16", "cast_model_to_fp16", "cast_parameters_to_fp16",
           "decorate", "fp16_guard"]
