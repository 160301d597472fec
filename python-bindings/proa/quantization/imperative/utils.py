"""Layer types by quantization's names, and search and replacement of sublayers."""
from ... import nn
from ...nn import quant
from ...nn.quant import quant_layers

layer_name_map = {name: getattr(nn, name) for name in """
Conv2DTranspose Conv2D Linear AdaptiveAvgPool2D AdaptiveMaxPool2D AvgPool2D MaxPool2D Hardswish LeakyReLU PReLU ReLU ReLU6
Sigmoid Softmax Swish Tanh BatchNorm GroupNorm LayerNorm
""".split()}
fake_quant_input_layers = [nn.Conv2D, nn.Linear, nn.Conv2DTranspose]
fake_quant_output_layers = [quant.add, quant.subtract, quant.multiply, quant.divide, quant.matmul]
fake_quant_leaf_layers = [quant_layers.FakeQuantAbsMax, quant_layers.FakeQuantChannelWiseAbsMax,
                          quant_layers.FakeQuantMovingAverageAbsMax, quant_layers.MovingAverageAbsMaxScale]
fake_quant_wrap_layers = [quant_layers.QuantizedConv2D, quant_layers.QuantizedLinear, quant_layers.QuantizedConv2DTranspose]
spec_channel_axis_layers = [nn.Conv2DTranspose, nn.Linear]


def is_leaf_layer(layer):
    """Whether a layer has no sublayers."""
    return isinstance(layer, nn.Layer) and not layer.sublayers()


def is_skipped(layer):
    """Whether a layer says that it stays as it is."""
    return getattr(layer, "skip_quant", False) is True


def find_parent_layer_and_sub_name(model, name):
    """(parent, name in it) of a sublayer by its dotted name."""
    parent, names = model, name.split(".")
    for part in names[:-1]:
        parent = parent._sub_layers[part]
    return parent, names[-1]


def replace_layer(model, name, layer):
    """Puts a layer where the sublayer of that dotted name is."""
    parent, sub_name = find_parent_layer_and_sub_name(model, name)
    parent._sub_layers[sub_name] = layer


def quantized_layer(layer, **options):
    """The Quantized… layer of a layer."""
    name = next((n for n, kind in layer_name_map.items() if isinstance(layer, kind)), None)
    made = getattr(quant_layers, f"Quantized{name}", None)
    if made is None:
        raise AssertionError(f"{layer.full_name()}, a {type(layer).__name__}, cannot be quantized: expected "
                             f"{', '.join(k.__name__ for k in fake_quant_input_layers)}")
    return made(layer, **options)
