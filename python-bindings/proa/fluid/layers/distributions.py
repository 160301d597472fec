"""fluid.layers.distributions: probability distributions with the methods of Paddle 1.x."""
import math

import numpy as np

from ... import _core
from ...distribution import Categorical, Normal, Uniform
from ...distribution.distribution import is_tensor
from ..data_feeder import check_type

__all__ = ["Categorical", "MultivariateNormalDiag", "Normal", "Uniform"]


def _tensor(value):
    """A tensor as it is; an array in its floating dtype, or else in float32."""
    if is_tensor(value):
        return value
    value = np.asarray(value)
    return _core.to_tensor(value if value.dtype in (np.float32, np.float64) else value.astype("float32"))


class MultivariateNormalDiag:
    """Mean loc [k]; scale [k, k], a diagonal matrix of variances."""

    def __init__(self, loc, scale):
        check_type(loc, "loc", (np.ndarray, _core.Tensor, list), "MultivariateNormalDiag")
        check_type(scale, "scale", (np.ndarray, _core.Tensor, list), "MultivariateNormalDiag")
        self.loc, self.scale = _tensor(loc), _tensor(scale)

    def _variances(self):
        return _core.diagonal(self.scale)

    def entropy(self):
        """½ (k (1 + log 2π) + log det scale), in nats."""
        found = self._variances()
        return 0.5 * (self.scale.shape[0] * (1.0 + math.log(2 * math.pi)) + found.log().sum())

    def kl_divergence(self, other):
        """Of this one from another: ½ (tr(other⁻¹ scale) + Δᵀ other⁻¹ Δ − k + log det other − log det scale)."""
        mine, theirs, away = self._variances(), other._variances(), other.loc - self.loc
        each = mine / theirs + away * away / theirs - 1.0 + theirs.log() - mine.log()
        return 0.5 * each.sum()
