"""paddle.incubate.asp: n:m structured sparsity. Weights are pruned by masks, which the optimizer's steps keep."""
from .asp import ASPHelper, decorate, prune_model, reset_excluded_layers, set_excluded_layers
from .supported_layer_list import add_supported_layer
from .utils import (CheckMethod, MaskAlgo, calculate_density, check_mask_1d, check_mask_2d, check_sparsity, create_mask,
                    get_mask_1d, get_mask_2d_best, get_mask_2d_greedy)

__all__ = ["calculate_density", "decorate", "prune_model", "set_excluded_layers", "reset_excluded_layers", "add_supported_layer"]
