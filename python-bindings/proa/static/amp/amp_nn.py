"""Operators of mixed precision in programs: gradients divided by the loss's scale, and the scale's next value."""
from ...fluid.layer_helper import LayerHelper

__all__ = ["check_finite_and_unscale", "update_loss_scaling"]


def check_finite_and_unscale(x, scale, name=None, float_status=None):
    """(x divided by scale, in place; whether an element of x is no finite number)."""
    if not isinstance(x, (list, tuple)):
        raise TypeError(f"check_finite_and_unscale: x must be a list or tuple of Tensors, got {type(x).__name__}")
    helper = LayerHelper("check_finite_and_unscale", name=name)
    found = helper.create_variable_for_type_inference("bool")
    helper.append_op("check_finite_and_unscale", {"X": list(x), "Scale": [scale]}, {"Out": list(x), "FoundInfinite": [found]})
    return x, found


def update_loss_scaling(x, found_inf, prev_loss_scaling, num_good_steps, num_bad_steps, incr_every_n_steps,
                        decr_every_n_nan_or_inf, incr_ratio, decr_ratio, stop_update=False, name=None):
    """x, set to zeros where found_inf holds. The scale grows after incr_every_n_steps finite steps, and shrinks after
    decr_every_n_nan_or_inf others; it and the counts change in place."""
    if not isinstance(x, (list, tuple)):
        raise TypeError(f"update_loss_scaling: x must be a list or tuple of Tensors, got {type(x).__name__}")
    attrs = {"incr_every_n_steps": incr_every_n_steps, "decr_every_n_nan_or_inf": decr_every_n_nan_or_inf,
             "incr_ratio": incr_ratio, "decr_ratio": decr_ratio, "stop_update": stop_update}
    inputs = {"X": list(x), "FoundInfinite": [found_inf], "PrevLossScaling": [prev_loss_scaling],
              "InGoodSteps": [num_good_steps], "InBadSteps": [num_bad_steps]}
    outputs = {"Out": list(x), "LossScaling": [prev_loss_scaling], "OutGoodSteps": [num_good_steps],
               "OutBadSteps": [num_bad_steps]}
    LayerHelper("update_loss_scaling", name=name).append_op("update_loss_scaling", inputs, outputs, attrs)
    return x
