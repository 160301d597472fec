"""The layers whose weights are pruned, and by which function."""
import inspect
import warnings

import numpy as np

from ...nn import Layer
from ...nn.layer.layers import _snake
from .utils import CheckMethod, check_sparsity, create_mask

__all__ = []

supported_layers_and_prune_func_map = {}


def _default_pruning(weight_nparray, m, n, func_name, param_name):
    """(pruned weight, mask): weights are pruned along their inputs. One with fewer than m of them stays as it is."""
    shape = weight_nparray.shape
    if len(shape) == 2 and shape[0] < m or len(shape) == 4 and shape[1] < m:
        warnings.warn(f"asp: {param_name} of shape {shape} is not pruned, it has fewer than {m} inputs", stacklevel=2)
        return weight_nparray.copy(), np.ones_like(weight_nparray)
    mask = create_mask(weight_nparray.T, func_name=func_name, n=n, m=m).T
    pruned = np.multiply(weight_nparray, mask)
    if not check_sparsity(pruned.T, n=n, m=m, func_name=CheckMethod.get_checking_method(func_name)):
        raise AssertionError(f"asp: the mask of {param_name} is not sparse in the pattern {n}:{m}")
    return pruned, mask


def add_supported_layer(layer, pruning_func=None):
    """Weights of a layer (its type, an instance, or the beginning of its parameters' names) are pruned from now on, by
    pruning_func(weight, m, n, algorithm, name), which returns the pruned array and the mask."""
    if isinstance(layer, Layer):
        layer = type(layer)
    if isinstance(layer, str):
        name = layer
    elif inspect.isclass(layer) and issubclass(layer, Layer):
        name = _snake(layer.__name__)
    else:
        raise TypeError(f"add_supported_layer: layer must be a Layer, its type or a name, got {layer!r}")
    supported_layers_and_prune_func_map[name] = pruning_func or _default_pruning


for _layer in ("fc", "linear", "conv2d"):
    add_supported_layer(_layer)
