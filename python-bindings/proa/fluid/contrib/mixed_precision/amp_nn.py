"""fluid.contrib.mixed_precision.amp_nn: paddle.static.amp.amp_nn."""
from ....static.amp.amp_nn import check_finite_and_unscale, update_loss_scaling

__all__ = ["check_finite_and_unscale", "update_loss_scaling"]
