"""Names that Paddle 2.6 has in one module and that stand in another here: imported when they are asked for."""
import importlib

# module: [(where its names stand here, the names)]
PLACES = {
    "nn.clip": [("fluid.layers", "clip_by_norm"), ("fluid.clip", "ErrorClipByValue")],
    "nn.functional.loss": [("fluid.layers", "edit_distance")],
    "optimizer.lr": [("fluid.layers", "autoincreased_step_counter cosine_decay exponential_decay inverse_time_decay linear_lr_warmup "
                                      "natural_exp_decay noam_decay piecewise_decay polynomial_decay")],
    "static.nn": [("fluid.layers", "continuous_value_model")],
    "static.nn.common": [("fluid.layers", "continuous_value_model deformable_conv")],
    "static.nn.control_flow": [("fluid.layers", "Assert"), ("fluid.layers.blocks", "ConditionalBlock Switch While")],
    "vision.transforms.functional": [("vision.transforms.warp", "affine perspective")],
}


def elsewhere(module):
    """The __getattr__ of a module of PLACES."""
    _, _, own = module.partition(".")
    places = {name: where for where, names in PLACES[own] for name in names.split()}

    def find(name):
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f".{places[name]}", __package__), name)
    return find
