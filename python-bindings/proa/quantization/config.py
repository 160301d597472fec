"""QuantConfig: which quanters each layer of a model gets."""
from .. import nn
from ..nn.quant.qat import QuantedConv2D, QuantedLinear
from ..nn.quant.stub import QuanterStub, Stub
from .wrapper import ObserveWrapper

__all__ = ["QuantConfig", "SingleLayerConfig"]

DEFAULT_QAT_LAYER_MAPPINGS = {Stub: QuanterStub, nn.Linear: QuantedLinear, nn.Conv2D: QuantedConv2D}
DEFAULT_LEAVES = [nn.ReLU, nn.AvgPool2D]


class SingleLayerConfig:
    """Factories of the quanters of one layer's activations and weights; either may be None."""

    def __init__(self, activation, weight):
        self._activation, self._weight = activation, weight

    @property
    def activation(self):
        return self._activation

    @property
    def weight(self):
        return self._weight

    def __str__(self):
        return f"activation: {self._activation}\nweight: {self._weight}"


def _layer_type(who, value):
    if not (isinstance(value, type) and issubclass(value, nn.Layer)):
        raise AssertionError(f"{who} must be a subclass of paddle.nn.Layer, got {value!r}")
    return value


def _indented(text, by=2):
    return text.replace("\n", "\n" + " " * by)


class QuantConfig:
    """Quanters of a model's layers: `activation` and `weight` for all of them, others by type, name or layer,
    where the last of these goes before those ahead of it.

    >>> import proa as paddle
    >>> from proa.quantization import QuantConfig
    >>> from proa.quantization.quanters import FakeQuanterWithAbsMaxObserver
    >>> quanter = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    >>> config = QuantConfig(activation=None, weight=None)
    >>> config.add_type_config(paddle.nn.Linear, activation=quanter, weight=quanter)
    """

    def __init__(self, activation, weight):
        none = activation is None and weight is None
        self._global_config = None if none else SingleLayerConfig(activation, weight)
        self._layer2config, self._prefix2config, self._type2config = {}, {}, {}
        self._model = None
        self._qat_layer_mapping = dict(DEFAULT_QAT_LAYER_MAPPINGS)
        self._customized_leaves = []

    # ---- what is said of layers

    def add_layer_config(self, layer, activation=None, weight=None):
        """The quanters of a layer, or of each of a list of layers."""
        for one in layer if isinstance(layer, list) else [layer]:
            self.add_name_config(one.full_name(), activation, weight)

    def add_name_config(self, layer_name, activation=None, weight=None):
        """The quanters of the layer of that full name, or of each of a list of names."""
        for one in layer_name if isinstance(layer_name, list) else [layer_name]:
            if isinstance(one, str):
                self._prefix2config[one] = SingleLayerConfig(activation, weight)

    def add_type_config(self, layer_type, activation=None, weight=None):
        """The quanters of layers of that type, or of each of a list of types."""
        for one in layer_type if isinstance(layer_type, list) else [layer_type]:
            if isinstance(one, type) and issubclass(one, nn.Layer):
                self._type2config[one] = SingleLayerConfig(activation, weight)

    def add_qat_layer_mapping(self, source, target):
        """Layers of type `source` become those of type `target`, which is made of a layer and its SingleLayerConfig."""
        _layer_type("add_qat_layer_mapping: source", source)
        if not isinstance(target, type):
            raise AssertionError(f"add_qat_layer_mapping: target must be a class, got {target!r}")
        self._qat_layer_mapping[source] = target

    def add_customized_leaf(self, layer_type):
        """Layers of that type are quantized as one: not what is inside."""
        self._customized_leaves.append(layer_type)

    @property
    def customized_leaves(self):
        """The types of add_customized_leaf."""
        return self._customized_leaves

    @property
    def qat_layer_mappings(self):
        """The type of layer that replaces each type."""
        return self._qat_layer_mapping

    @property
    def default_qat_layer_mapping(self):
        """The type of layer that replaces each type unless add_qat_layer_mapping says otherwise."""
        return DEFAULT_QAT_LAYER_MAPPINGS

    @property
    def global_config(self):
        """The SingleLayerConfig of all layers, or None."""
        return self._global_config

    # ---- what follows for a model

    def _specify(self, model):
        """Finds the config of each sublayer: its parent's (else the global one), or its type's, or its name's."""
        self._model = model
        self._specify_below(model)

    def _specify_below(self, layer):
        inherited = self._layer2config.get(layer, self._global_config)
        for child in layer.children():
            config = self._type2config.get(type(child), inherited)
            config = self._prefix2config.get(child.full_name(), config)
            if config is not None:
                self._layer2config[child] = config
            self._specify_below(child)

    def _get_config_by_layer(self, layer):
        return self._layer2config.get(layer)

    def _is_quantifiable(self, layer):
        return layer in self._layer2config

    def _is_leaf(self, layer):
        return type(layer) in DEFAULT_LEAVES or type(layer) in self._customized_leaves or not list(layer.children())

    def _need_observe(self, layer):
        config = self._get_config_by_layer(layer)
        return self._is_leaf(layer) and config is not None and config.activation is not None

    def _get_qat_layer(self, layer):
        return self._qat_layer_mapping[type(layer)](layer, self._get_config_by_layer(layer))

    def _get_observer(self, layer):
        config = self._get_config_by_layer(layer)
        return None if config is None or config.activation is None else config.activation._instance(layer)

    def _get_observe_wrapper(self, layer):
        return ObserveWrapper(self._get_observer(layer), layer)

    # ---- as text

    def details(self):
        """The model with the config of each layer; without a model, what was said."""
        return str(self) if self._model is None else self._details_of(self._model)

    def _details_of(self, layer):
        lines = [f"  ({name}): {_indented(self._details_of(child))}, {self._layer2config[child]}"
                 for name, child in layer.named_children() if child in self._layer2config]
        inside = "\n" + "\n".join(lines) + "\n" if lines else ""
        return f"{type(layer).__name__}({inside})"

    def __str__(self):
        text = f"Global config:\n{self._global_config}\n"
        if self._type2config:
            text += f"Layer type config:\n{self._type2config}\n"
        if self._prefix2config:
            text += f"Layer prefix config: \n{self._prefix2config}\n"
        return text
