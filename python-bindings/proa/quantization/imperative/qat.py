"""ImperativeQuantAware: training with fake quantizers in a model's layers."""
from ... import nn
from ...nn import quant
from ...nn.quant import quant_layers
from . import utils
from .export import finish
from .fuse_utils import fuse_conv_bn as fold_norms

__all__ = ["ImperativeQuantAware", "ImperativeQuantizeInputs", "ImperativeQuantizeOutputs"]


def _bits(name, value):
    if not isinstance(value, int) or not 1 <= value <= 16:
        raise AssertionError(f"{name} must be an integer from 1 to 16, got {value!r}")


def _layer_or_none(name, value):
    if value is not None and not (isinstance(value, type) and issubclass(value, nn.Layer)):
        raise AssertionError(f"{name} must be a subclass of nn.Layer or None, got {value!r}")


def _model(value):
    if not isinstance(value, nn.Layer):
        raise AssertionError(f"quantize: model must be a paddle.nn.Layer, got {type(value).__name__}")


class ImperativeQuantizeInputs:
    """Replaces layers by those that quantize their weight and input."""

    def __init__(self, quantizable_layer_type=("Conv2D", "Linear", "Conv2DTranspose"), weight_quantize_type="abs_max",
                 activation_quantize_type="moving_average_abs_max", weight_bits=8, activation_bits=8, moving_rate=0.9,
                 weight_preprocess_layer=None, act_preprocess_layer=None, weight_quantize_layer=None, act_quantize_layer=None):
        kinds = [utils.layer_name_map.get(k, k) if isinstance(k, str) else k for k in quantizable_layer_type
                 if k not in ("ColumnParallelLinear", "RowParallelLinear")]
        for kind in kinds:
            if kind not in utils.fake_quant_input_layers:
                raise AssertionError(f"quantizable_layer_type: {kind} cannot be quantized: expected "
                                     f"{', '.join(k.__name__ for k in utils.fake_quant_input_layers)}")
        if weight_quantize_type not in ("abs_max", "channel_wise_abs_max", "lsq_weight", "channel_wise_lsq_weight"):
            raise AssertionError("weight_quantize_type must be 'abs_max', 'channel_wise_abs_max', 'lsq_weight' or "
                                 f"'channel_wise_lsq_weight', got {weight_quantize_type!r}")
        if activation_quantize_type not in ("moving_average_abs_max", "abs_max", "lsq_act"):
            raise AssertionError("activation_quantize_type must be 'moving_average_abs_max', 'abs_max' or 'lsq_act', got "
                                 f"{activation_quantize_type!r}")
        _bits("weight_bits", weight_bits)
        _bits("activation_bits", activation_bits)
        for name, value in (("weight_preprocess_layer", weight_preprocess_layer), ("act_preprocess_layer", act_preprocess_layer),
                            ("weight_quantize_layer", weight_quantize_layer), ("act_quantize_layer", act_quantize_layer)):
            _layer_or_none(name, value)
        self._kinds = tuple(kinds)
        self._options = {"weight_quantize_type": weight_quantize_type, "activation_quantize_type": activation_quantize_type,
                         "weight_bits": weight_bits, "activation_bits": activation_bits, "moving_rate": moving_rate,
                         "weight_pre_layer": weight_preprocess_layer, "act_pre_layer": act_preprocess_layer,
                         "weight_quant_layer": weight_quantize_layer, "act_quant_layer": act_quantize_layer}

    def apply(self, model):
        """Edits the model in place."""
        for name, layer in list(model.named_sublayers()):
            if isinstance(layer, self._kinds) and not utils.is_skipped(layer):
                utils.replace_layer(model, name, utils.quantized_layer(layer, **self._options))


class ImperativeQuantizeOutputs:
    """Puts observers behind layers, and saves models with what they saw."""

    def __init__(self, moving_rate=0.9, activation_bits=8, onnx_format=False):
        self._moving_rate, self._activation_bits, self._onnx_format = moving_rate, activation_bits, onnx_format

    def apply(self, model):
        """Edits the model in place."""
        for name, layer in list(model.named_sublayers()):
            if not self._is_observed(name, layer):
                continue
            if isinstance(layer, tuple(utils.fake_quant_output_layers)):
                made = quant_layers.FakeQuantMAOutputScaleLayer(layer, moving_rate=self._moving_rate,
                                                                activation_bits=self._activation_bits)
            else:
                made = quant_layers.MAOutputScaleLayer(layer, self._moving_rate)
            utils.replace_layer(model, name, made)

    def _is_observed(self, name, layer):
        if "_act_preprocess" in name:
            return False
        if isinstance(layer, tuple(utils.fake_quant_wrap_layers)):
            return True
        if self._onnx_format:
            return False
        return isinstance(layer, quant.FloatFunctionalLayer) or (
            utils.is_leaf_layer(layer) and not isinstance(layer, tuple(utils.fake_quant_leaf_layers)))

    def save_quantized_model(self, model, path, input_spec=None, **config):
        """Saves the model as it is in evaluation, and puts scales where inference looks for them."""
        from ...jit import save
        training = [layer for layer in model.sublayers(include_self=True) if layer.training]
        model.eval()
        try:
            save(model, path, input_spec=input_spec, **config)
        finally:
            for layer in training:
                layer.training = True
        finish(path, self._onnx_format, self._activation_bits)


class ImperativeQuantAware:
    """Quantization-aware training of a model's layers, edited in place.

    >>> import proa as paddle
    >>> from proa.quantization import ImperativeQuantAware
    >>> net = paddle.nn.Sequential(paddle.nn.Linear(4, 3), paddle.nn.ReLU())
    >>> quantizer = ImperativeQuantAware(weight_quantize_type="channel_wise_abs_max")
    >>> out = quantizer.quantize(net)
    >>> net(paddle.ones([2, 4])).shape
    [2, 3]
    """

    def __init__(self, quantizable_layer_type=("Conv2D", "Linear", "Conv2DTranspose", "ColumnParallelLinear",
                                               "RowParallelLinear"),
                 weight_quantize_type="abs_max", activation_quantize_type="moving_average_abs_max", weight_bits=8,
                 activation_bits=8, moving_rate=0.9, fuse_conv_bn=False, weight_preprocess_layer=None, act_preprocess_layer=None,
                 weight_quantize_layer=None, act_quantize_layer=None, onnx_format=False):
        self.fuse_conv_bn = fuse_conv_bn
        self._quantize_inputs = ImperativeQuantizeInputs(
            quantizable_layer_type, weight_quantize_type, activation_quantize_type, weight_bits, activation_bits, moving_rate,
            weight_preprocess_layer, act_preprocess_layer, weight_quantize_layer, act_quantize_layer)
        self._quantize_outputs = ImperativeQuantizeOutputs(moving_rate, activation_bits, onnx_format)

    def quantize(self, model):
        """Puts fake quantizers and observers into the model; returns it."""
        _model(model)
        if self.fuse_conv_bn:
            fold_norms(model)
        self._quantize_inputs.apply(model)
        self._quantize_outputs.apply(model)
        return model

    def save_quantized_model(self, layer, path, input_spec=None, **config):
        """Writes path.pdmodel and path.pdiparams."""
        self._quantize_outputs.save_quantized_model(layer, path, input_spec, **config)
