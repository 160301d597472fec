"""ImperativePTQ: post-training quantization of a model's layers from calibration samples."""
import copy

from ... import nn
from ...nn.quant.quant_layers import MAOutputScaleLayer
from . import utils
from .export import finish
from .fuse_utils import fuse_layers
from .ptq_config import PTQConfig, default_ptq_config
from .ptq_quantizer import AbsmaxQuantizer
from .ptq_registry import PTQRegistry

__all__ = ["ImperativePTQ"]


def _observe(layer, inputs, outputs):
    config = layer._quant_config
    if config.enable_in_act_quantizer:
        config.in_act_quantizer.sample_data(layer, inputs)
    config.out_act_quantizer.sample_data(layer, (outputs,))


class ImperativePTQ:
    """Observes a model's layers while it runs on samples; save_quantized_model quantizes it by what was seen.

    >>> import proa as paddle
    >>> from proa.quantization import ImperativePTQ
    >>> net = paddle.nn.Sequential(paddle.nn.Linear(4, 3), paddle.nn.ReLU())
    >>> ptq = ImperativePTQ()
    >>> observed = ptq.quantize(net)
    >>> observed(paddle.ones([2, 4])).shape
    [2, 3]
    """

    def __init__(self, quant_config=default_ptq_config):
        if not isinstance(quant_config, PTQConfig):
            raise AssertionError(f"ImperativePTQ: quant_config must be a PTQConfig, got {type(quant_config).__name__}")
        self._quant_config = quant_config

    def quantize(self, model, inplace=False, fuse=False, fuse_list=None):
        """The model with observers. fuse: normalizations are folded first, by the pairs of names in fuse_list."""
        if not isinstance(model, nn.Layer):
            raise AssertionError(f"quantize: model must be a paddle.nn.Layer, got {type(model).__name__}")
        if not inplace:
            model = copy.deepcopy(model)
        if fuse:
            model.eval()
            model = fuse_layers(model, fuse_list)
        for layer in model.sublayers():
            if PTQRegistry.is_supported_layer(layer) and utils.is_leaf_layer(layer) and not utils.is_skipped(layer):
                config = layer._quant_config = copy.deepcopy(self._quant_config)
                config.enable_in_act_quantizer = PTQRegistry.is_simulated_quant_layer(layer)
                config.quant_hook_handle = layer.register_forward_post_hook(_observe)
        return model

    def save_quantized_model(self, model, path, input_spec=None, **config):
        """Quantizes the model in place by what was seen, and writes path.pdmodel and path.pdiparams."""
        from ...jit import save
        self._convert(model)
        model.eval()
        save(model, path, input_spec=input_spec, **config)
        finish(path, False, 8)

    def _convert(self, model):
        for name, layer in list(model.named_sublayers()):
            config = getattr(layer, "_quant_config", None)
            if config is None:
                continue
            config.quant_hook_handle.remove()
            out = config.out_act_quantizer
            out.cal_thresholds()
            if config.enable_in_act_quantizer:
                layer = self._quantized(layer, config)
            if len(out.thresholds) == 1:
                layer = MAOutputScaleLayer(layer)
                layer._ma_output_scale._scale.set_value([out.thresholds[0]])
            utils.replace_layer(model, name, layer)

    @staticmethod
    def _quantized(layer, config):
        weights, inputs = config.wt_quantizer, config.in_act_quantizer
        inputs.cal_thresholds()
        weights.sample_data(layer, (layer.weight,))
        weights.cal_thresholds()
        kind = "abs_max" if isinstance(weights, AbsmaxQuantizer) else "channel_wise_abs_max"
        made = utils.quantized_layer(layer, weight_quantize_type=kind, activation_quantize_type="moving_average_abs_max",
                                     weight_bits=weights.quant_bits, activation_bits=inputs.quant_bits)
        if len(inputs.thresholds) == 1:
            made._fake_quant_input._scale.set_value([inputs.thresholds[0]])
        return made
