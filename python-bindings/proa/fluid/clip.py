"""fluid.clip: gradient clipping under its fluid names, ErrorClipByValue, set_gradient_clip, clip_by_value."""
import warnings

from .. import _core
from ..nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue

__all__ = ["ErrorClipByValue", "GradientClipByGlobalNorm", "GradientClipByNorm", "GradientClipByValue", "set_gradient_clip"]

GradientClipByValue, GradientClipByNorm, GradientClipByGlobalNorm = ClipGradByValue, ClipGradByNorm, ClipGradByGlobalNorm


class ErrorClipByValue:
    """Clips the gradient of a variable, its error, into [min, max]."""

    def __init__(self, max, min=None):
        self.max, self.min = float(max), float(-max if min is None else min)

    def __str__(self):
        return f"ByValue, min={self.min:f}, max={self.max:f}"


def set_gradient_clip(clip, param_list=None, program=None):
    """The clip of the parameters that an optimizer without one of its own updates."""
    from ..static.program import default_main_program
    warnings.warn("set_gradient_clip is deprecated: give grad_clip to the optimizer")
    program = program or default_main_program()
    for param in param_list or program.all_parameters():
        param = program.global_block().var(param) if isinstance(param, str) else param
        param.gradient_clip_attr = clip


def clip_by_value(x, low, high):
    """Every element into [low, high]."""
    return _core.clip(x, low, high)
