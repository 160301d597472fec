"""PTQConfig: the quantizers of a layer's input, output and weight."""
import copy

from .ptq_quantizer import SUPPORT_ACT_QUANTIZERS, SUPPORT_WT_QUANTIZERS, KLQuantizer, PerChannelAbsmaxQuantizer

__all__ = ["PTQConfig", "default_ptq_config"]


def _checked(name, value, kinds):
    if not isinstance(value, tuple(kinds)):
        raise AssertionError(f"PTQConfig: {name} must be one of {', '.join(k.__name__ for k in kinds)}, got {value!r}")


class PTQConfig:
    """Quantizers of activations and weights; a layer gets copies."""

    def __init__(self, activation_quantizer, weight_quantizer):
        _checked("activation_quantizer", activation_quantizer, SUPPORT_ACT_QUANTIZERS)
        _checked("weight_quantizer", weight_quantizer, SUPPORT_WT_QUANTIZERS)
        self.in_act_quantizer, self.out_act_quantizer = (copy.deepcopy(activation_quantizer) for _ in range(2))
        self.wt_quantizer = copy.deepcopy(weight_quantizer)
        self.quant_hook_handle = None
        self.enable_in_act_quantizer = False


default_ptq_config = PTQConfig(KLQuantizer(), PerChannelAbsmaxQuantizer())
