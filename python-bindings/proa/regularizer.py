"""Weight decay by the gradient: L1Decay adds coeff · sign(param), L2Decay coeff · param."""
from . import _core

__all__ = ['L1Decay', 'L2Decay']


class WeightDecayRegularizer:
    """Base: an object called with (param, grad, block) that returns what is added to the gradient."""

    def __init__(self, coeff=0.0):
        if coeff is None:
            raise AssertionError(f"{type(self).__name__}: coeff must be a number, got None")
        self._coeff = coeff

    def __call__(self, param, grad, block=None):
        raise NotImplementedError(f"{type(self).__name__}: a regularizer must define __call__")

    def __str__(self):
        return f"{type(self).__name__}, coeff={self._coeff:f}"


class L1Decay(WeightDecayRegularizer):
    """The gradient of coeff · Σ|param|."""

    def __call__(self, param, grad, block=None):
        return _core.scale(_core.sign(param), self._coeff)


class L2Decay(WeightDecayRegularizer):
    """The gradient of coeff / 2 · Σ param²."""

    def __call__(self, param, grad, block=None):
        return _core.scale(param, self._coeff)
