"""Quantization, the base of QAT and PTQ: puts quanters into a model, and replaces them by the exported form."""
import abc
import copy

from ..nn.quant.format import ConvertibleQuantedLayer, LinearQuanterDequanter
from .base_quanter import BaseQuanter

__all__ = ["Quantization"]


class Quantization(metaclass=abc.ABCMeta):
    """Quantizes models by a QuantConfig, of which it keeps a copy."""

    def __init__(self, config):
        self._config = copy.deepcopy(config)

    @abc.abstractmethod
    def quantize(self, model, inplace=False):
        """The model with quanters."""

    def convert(self, model, inplace=False, remain_weight=False):
        """The model with quantize_linear and dequantize_linear of the scales that were found, to be saved by jit.save. Its
        weights are integers unless remain_weight."""
        model = model if inplace else copy.deepcopy(model)
        for name, child in list(model.named_children()):
            if isinstance(child, ConvertibleQuantedLayer):
                quanter = child.weight_quanter
                if not child.converted and quanter is not None and quanter.scales() is not None:
                    child._convert(remain_weight=remain_weight)
            elif isinstance(child, BaseQuanter):
                model._sub_layers[name] = LinearQuanterDequanter.from_quanter(child)
            else:
                self.convert(child, inplace=True, remain_weight=remain_weight)
        return model

    def _prepare(self, model):
        self._config._specify(model)
        self._convert_to_quant_layers(model, self._config)
        self._insert_activation_observers(model, self._config)
        return model

    def _convert_to_quant_layers(self, model, config):
        for name, child in list(model.named_children()):
            if config._is_quantifiable(child) and type(child) in config.qat_layer_mappings:
                model._sub_layers[name] = config._get_qat_layer(child)
            else:
                self._convert_to_quant_layers(child, config)

    def _insert_activation_observers(self, model, config):
        for name, child in list(model.named_children()):
            if config._need_observe(child):
                model._sub_layers[name] = config._get_observe_wrapper(child)
            else:
                self._insert_activation_observers(child, config)

    def _details(self):
        return self._config.details()

    def __str__(self):
        return self._details()

    __repr__ = __str__
