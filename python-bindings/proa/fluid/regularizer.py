"""fluid.regularizer: L1 and L2 weight decay under their fluid names."""
from ..regularizer import L1Decay, L2Decay

__all__ = ["L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer"]


class L1DecayRegularizer(L1Decay):
    """Adds regularization_coeff · sign(parameter) to the gradient."""

    def __init__(self, regularization_coeff=0.0):
        super().__init__(regularization_coeff)


class L2DecayRegularizer(L2Decay):
    """Adds regularization_coeff · parameter to the gradient."""

    def __init__(self, regularization_coeff=0.0):
        super().__init__(regularization_coeff)
