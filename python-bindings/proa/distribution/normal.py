"""The normal and the log-normal distribution."""
import math

from .._asks import asks
from .distribution import Distribution, drawn_shape, gaussian, need_seed, need_value, shape_list, tensors


class Normal(Distribution):
    """Mean loc, standard deviation scale: numbers, arrays or tensors."""

    def __init__(self, loc, scale, name=None):
        self.name = name or "Normal"
        self.loc, self.scale, self.dtype, self.all_arg_is_float = tensors("Normal", loc, scale)
        super().__init__(self.loc.shape)

    @property
    def mean(self):
        return self.loc

    @property
    def variance(self):
        return self.scale.pow(2)

    def sample(self, shape=(), seed=0):
        """Without a gradient to loc and scale's draws; shape + batch shape, or shape alone for plain numbers."""
        shape = drawn_shape("Normal.sample", shape)
        need_seed("Normal.sample", seed)
        drawn = self._drawn(shape)
        return drawn.reshape(shape) if self.all_arg_is_float else drawn

    def rsample(self, shape=()):
        return self._drawn(shape_list("Normal.rsample", shape))

    def _drawn(self, shape):
        batch = (self.loc + self.scale).shape
        return gaussian(list(shape) + list(batch), self.dtype) * self.scale + self.loc

    def entropy(self):
        spread = self.scale + self.loc * 0
        return spread.log() + (0.5 + 0.5 * math.log(2 * math.pi))

    def log_prob(self, value):
        value = self._like(self.loc, value)
        away = value - self.loc
        return -(away * away) / (2.0 * self.scale * self.scale) - (self.scale.log() + 0.5 * math.log(2 * math.pi))

    def probs(self, value):
        value = self._like(self.loc, value)
        away = value - self.loc
        return (-(away * away) / (2.0 * self.scale * self.scale)).exp() / (math.sqrt(2 * math.pi) * self.scale)

    @asks("other:-Tensor!InvalidArgument")
    def kl_divergence(self, other):
        ratio = (self.scale / other.scale).square()
        shift = ((self.loc - other.loc) / other.scale).square()
        return 0.5 * ratio + 0.5 * (shift - 1.0 - ratio.log())


class LogNormal(Distribution):
    """exp(x) of a normal x with mean loc and standard deviation scale."""

    def __init__(self, loc, scale):
        self._base = Normal(loc, scale)
        self.loc, self.scale = self._base.loc, self._base.scale
        super().__init__(self._base.batch_shape)

    @property
    def mean(self):
        return (self._base.mean + self._base.variance / 2).exp()

    @property
    def variance(self):
        return self._base.variance.expm1() * (2 * self._base.mean + self._base.variance).exp()

    def sample(self, shape=()):
        return self._base.sample(shape).exp()

    def rsample(self, shape=()):
        return self._base.rsample(shape).exp()

    def entropy(self):
        return self._base.entropy() + self._base.mean

    def log_prob(self, value):
        need_value("LogNormal.log_prob", value)
        return self._base.log_prob(value.log()) - value.log()

    def probs(self, value):
        return self.log_prob(value).exp()

    def kl_divergence(self, other):
        return self._base.kl_divergence(other._base)
