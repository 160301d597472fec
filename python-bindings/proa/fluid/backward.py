"""fluid.backward: append_backward, gradients and calc_gradient, which add gradient operators to programs."""
from ..static.backward import append_backward, gradients

__all__ = ["append_backward", "gradients"]


def calc_gradient(targets, inputs, target_gradients=None, no_grad_set=None):
    """The gradients of targets with respect to inputs; one alone is no list."""
    found = gradients(targets, inputs, target_gradients, no_grad_set)
    return found[0] if len(found) == 1 else found


def _as_list(x):
    """None as no values, a sequence as a list, anything else as its only value."""
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def _append_grad_suffix_(name):
    """The name of a variable's gradient."""
    return name + "@GRAD"
