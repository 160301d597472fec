"""paddle.nn.initializer: initial values of parameters."""
from . import lazy_init
from .draw import (KaimingNormal, KaimingUniform, Normal, TruncatedNormal, Uniform, XavierNormal,
                   XavierUniform, calculate_gain)
from .exact import Assign, Bilinear, Constant, Dirac, Orthogonal
from .initializer import Initializer

__all__ = ["Assign", "Bilinear", "Constant", "Dirac", "KaimingNormal", "KaimingUniform", "Normal", "Orthogonal",
           "TruncatedNormal", "Uniform", "XavierNormal", "XavierUniform", "calculate_gain", "set_global_initializer"]

_global = {False: None, True: None}


def set_global_initializer(weight_init, bias_init=None):
    """Initializers of all weights and biases made from now on, but for those whose ParamAttr says another.

    >>> import proa as paddle
    >>> init = paddle.nn.initializer
    >>> init.set_global_initializer(init.Constant(2.0), init.Constant(1.0))
    >>> paddle.nn.Linear(1, 1).weight.tolist()
    [[2.0]]
    >>> init.set_global_initializer(None)
    """
    _global[False], _global[True] = weight_init, bias_init


def global_initializer(is_bias):
    """The initializer of weights or biases that set_global_initializer set, or None. As in Paddle, a wrong one is refused here."""
    value = _global[bool(is_bias)]
    if value is not None and not isinstance(value, Initializer):
        what = "bias_init" if is_bias else "weight_init"
        raise TypeError(f"set_global_initializer: {what} must be an Initializer or None, got {value!r}")
    return value
