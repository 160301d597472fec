"""Location-scale distributions: Laplace, Gumbel, Cauchy."""
import math

from .. import _core
from .._asks import asks, need_kernel
from .._errors import of_kind
from ..tensor._tools import need_few_dims
from .distribution import Distribution, broadcast, drawn_shape, name_of, need, need_value, uniform

EULER = 0.57721566490153286060


class _LocationScale(Distribution):
    _strict = False  # about the kinds of shapes and values

    def __init__(self, loc, scale, name=None):
        self.loc, self.scale = broadcast(type(self).__name__, loc=loc, scale=scale)
        super().__init__(self.loc.shape)

    def sample(self, shape=()):
        was = _core.set_recording(False)
        try:
            return self.rsample(shape)
        finally:
            _core.set_recording(was)

    def _uniform(self, shape, low, high):
        shape = self._extend_shape(drawn_shape(f"{type(self).__name__}.sample", shape, self._strict))
        return uniform(shape, name_of(self.loc.dtype), low, high)

    def _standard(self, value):
        value = self._like(self.loc, value, self._strict)
        need_few_dims(type(self).__name__, value=value)
        return (value - self.loc) / self.scale


class Laplace(_LocationScale):
    """Density exp(−|x − loc| / scale) / (2 scale)."""

    @property
    def mean(self):
        return self.loc

    @property
    def stddev(self):
        return 2 ** 0.5 * self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def log_prob(self, value):
        return -(2 * self.scale).log() - self._standard(value).abs()

    def entropy(self):
        return 1 + (2 * self.scale).log()

    def cdf(self, value):
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value):
        if isinstance(value, (int, float)):
            value = _core.full([], value, self.loc.dtype)
        elif hasattr(value, "__array__") and not isinstance(value, _core.Tensor):
            raise of_kind(f"Laplace.icdf: value must be a Tensor, got {type(value).__name__}")
        need_few_dims("Laplace.icdf", value=value)
        t = self._like(self.loc, value) - 0.5
        return self.loc - self.scale * t.sign() * (-2 * t.abs()).log1p()

    def rsample(self, shape):
        u = self._uniform(shape, -1 + 1.1920928955078125e-07, 1.0)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    @asks("other:-Tensor!InvalidArgument")
    def kl_divergence(self, other):
        ratio, away = self.scale / other.scale, (self.loc - other.loc).abs()
        return -ratio.log() + ratio * (-away / self.scale).exp() + away / other.scale - 1


class Gumbel(_LocationScale):
    """The largest of many draws; distribution function exp(−exp(−(x − loc) / scale))."""

    @property
    def mean(self):
        return self.loc + self.scale * EULER

    @property
    def variance(self):
        return self.scale.pow(2) * (math.pi ** 2 / 6)

    @property
    def stddev(self):
        return self.variance.sqrt()

    def _standard(self, value):
        return -((self.loc - value) / self.scale)  # in this order bools count as 0 and 1

    def _log_density(self, value):
        z = self._standard(value)
        return -(z + (-z).exp()) - self.scale.log()

    def log_prob(self, value):
        need_kernel("Gumbel.log_prob", "b,u1,i1,i2,i4,i8,f4,f8", value=value)
        return self._log_density(value)

    def prob(self, value):
        return self._log_density(value).exp()

    def cdf(self, value):
        return (-(-self._standard(value)).exp()).exp()

    def entropy(self):
        return self.scale.log() + 1 + EULER

    def sample(self, shape):
        return super().sample(shape)

    def rsample(self, shape):
        u = self._uniform(drawn_shape("Gumbel.sample", shape, True), 1e-7, 1.0 - 1e-7)
        return self.loc - self.scale * (-u.log()).log()


class Cauchy(_LocationScale):
    """Density 1 / (π scale (1 + ((x − loc) / scale)²)); it has no mean."""

    _strict = True

    def sample(self, shape, name=None):
        return super().sample(shape)

    @property
    def mean(self):
        raise ValueError("Cauchy: the distribution has no mean")

    @property
    def variance(self):
        raise ValueError("Cauchy: the distribution has no variance")

    @property
    def stddev(self):
        raise ValueError("Cauchy: the distribution has no standard deviation")

    def log_prob(self, value):
        need_value("Cauchy.log_prob", value)
        return -self._standard(value).square().log1p() - math.log(math.pi) - self.scale.log()

    def prob(self, value):
        return self.log_prob(value).exp()

    def cdf(self, value):
        need_value("Cauchy.cdf", value)
        return self._standard(value).atan() / math.pi + 0.5

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()

    def rsample(self, shape, name=None):
        full = self._extend_shape(drawn_shape("Cauchy.rsample", shape, strict=True))
        loc, scale = self.loc.expand(full), self.scale.expand(full)
        u = self._uniform(shape, 1e-7, 1.0 - 1e-7)
        return loc + scale * (math.pi * (u - 0.5)).tan()

    def kl_divergence(self, other):
        need("Cauchy.kl_divergence", "other", other, Cauchy, "a Cauchy")
        top = (self.scale + other.scale).square() + (self.loc - other.loc).square()
        return (top / (4 * self.scale * other.scale)).log()
