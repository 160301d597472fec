"""Folding of batch normalization into the convolution or linear layer ahead of it."""
import copy

from ... import nn
from .utils import find_parent_layer_and_sub_name, replace_layer

__all__ = ["fuse_conv_bn", "fuse_layers"]

_FOLDABLE = (nn.Conv2D, nn.Linear)


def _fold(layer, norm):
    """Sets a layer's weight and bias to what it and the normalization behind it compute in evaluation."""
    scale = (norm._variance.numpy() + norm._epsilon) ** -0.5
    if norm.weight is not None:
        scale = scale * norm.weight.numpy()
    weight, axis = layer.weight.numpy(), 1 if isinstance(layer, nn.Linear) else 0
    shift = norm.bias.numpy() if norm.bias is not None else 0.0
    bias = layer.bias.numpy() if layer.bias is not None else 0.0
    folded = ((bias - norm._mean.numpy()) * scale + shift).astype(weight.dtype)
    layer.weight.set_value((weight * scale.reshape([-1 if d == axis else 1 for d in range(weight.ndim)])).astype(weight.dtype))
    if layer.bias is None:
        layer.bias = layer.create_parameter([len(folded)], is_bias=True, dtype=layer.weight.dtype)
    layer.bias.set_value(folded)


def fuse_conv_bn(model):
    """Folds each batch normalization into the convolution that stands directly ahead of it in its parent."""
    pairs, before = [], None
    for name, layer in model.named_sublayers():
        if isinstance(layer, (nn.BatchNorm2D, nn.BatchNorm)) and before is not None and \
                before.rpartition(".")[0] == name.rpartition(".")[0]:
            pairs.append([before, name])
        before = name if isinstance(layer, nn.Conv2D) else None
    training = model.training
    model.eval()
    fuse_layers(model, pairs, inplace=True)
    if training:
        model.train()


def fuse_layers(model, layers_to_fuse, inplace=False):
    """Folds normalizations into layers by dotted names: [[convolution, normalization], …]."""
    if layers_to_fuse is None:
        raise TypeError("fuse_layers: expected a list of [layer, normalization] names, got None")
    if not inplace:
        model = copy.deepcopy(model)
    for names in layers_to_fuse:
        layers = [parent._sub_layers[last] for parent, last in (find_parent_layer_and_sub_name(model, n) for n in names)]
        if len(layers) != 2 or not isinstance(layers[0], _FOLDABLE) or not hasattr(layers[1], "_variance"):
            raise NotImplementedError(f"fuse_layers: {names} are {[type(one).__name__ for one in layers]}; expected a "
                                      "convolution or linear layer, and a batch normalization")
        if layers[0].training or layers[1].training:
            raise AssertionError("fuse_layers: call model.eval() first: batches' statistics cannot be folded")
        _fold(*layers)
        replace_layer(model, names[1], nn.Identity())
    return model
