"""paddle.autograd.ir_backward: gradients of a program's variables, under 2.6's names for its second kind of programs. Proa has
one kind."""
from .. import _core
from ..static.backward import gradients

__all__ = ["grad", "calc_gradient", "calc_gradient_helper"]


def _variables(who, what, value):
    """The value as a list of variables."""
    found = [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]
    for one in found:
        if not isinstance(one, _core.Tensor) or not one.is_symbolic:
            raise TypeError(f"{who}: {what} must be variables of a program, got {type(one).__name__}")
    return found


def calc_gradient(outputs, inputs, grad_outputs, no_grad_set):
    """The gradients of outputs with respect to inputs, a list; None for one that no gradient reaches. grad_outputs: the
    outputs' own (None: ones)."""
    outputs, inputs = _variables("calc_gradient", "outputs", outputs), _variables("calc_gradient", "inputs", inputs)
    return gradients(outputs, inputs, grad_outputs or None, no_grad_set or None)


def calc_gradient_helper(outputs, inputs, grad_outputs, no_grad_set):
    """{input's name: [its gradient]} of the inputs that a gradient reaches."""
    found = calc_gradient(outputs, inputs, grad_outputs, no_grad_set)
    names = [one.name for one in _variables("calc_gradient_helper", "inputs", inputs)]
    return {name: [gradient] for name, gradient in zip(names, found) if gradient is not None}


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=False,
         no_grad_vars=None):
    """As calc_gradient; ValueError if no gradient reaches an input, unless allow_unused says that None may stand for it.
    retain_graph, create_graph and only_inputs mean nothing in a program."""
    found = calc_gradient(outputs, inputs, grad_outputs, no_grad_vars)
    for one, gradient in zip(_variables("grad", "inputs", inputs), found):
        if gradient is None and not allow_unused:
            raise ValueError(f"grad: no gradient reaches {one.name}; pass allow_unused=True to get None for it")
    return found
