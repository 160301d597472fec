"""The Bernoulli distribution (one trial) and the geometric distribution (failures before the first success)."""
import numbers

from .. import _core
from .._errors import of_dtype
from ..tensor import ones_like, zeros_like
from ..tensor.manipulation import common_shape
from .distribution import (Distribution, ExponentialFamily, drawn_shape, is_tensor, name_of, need, need_elements, shape_list, tensors,
                           uniform)


def _probability(who, value, lists=False):
    if lists and (isinstance(value, (list, tuple)) or hasattr(value, "__array__") and not is_tensor(value)):
        return tensors(who, value)[0]
    if not is_tensor(value):
        if not isinstance(value, (int, float)):
            raise TypeError(f"{who}: probs must be a float or a Tensor, got {type(value).__name__}")
        value = _core.to_tensor(float(value))
    return value


class Bernoulli(ExponentialFamily):
    """1 with probability probs, else 0."""

    def __init__(self, probs, name=None):
        self.name = name or "Bernoulli"
        self.probs = _probability("Bernoulli", probs, lists=True)
        self.dtype = self.probs.dtype
        if name_of(self.dtype) not in ("float16", "bfloat16", "float32", "float64"):
            refuse = of_dtype if name_of(self.dtype) == "bool" else TypeError
            raise refuse(f"Bernoulli: probs must be floating, got {name_of(self.dtype)}")
        need_elements("Bernoulli", "probs", self.probs)
        # as Paddle: the least step away from 0 and 1, so that logarithms are finite
        least = 2.220446049250313e-16 if str(self.dtype).endswith("64") else 1.1920928955078125e-07
        self._clipped = self.probs.clip(least, 1 - least)
        self.logits = self._clipped.log() - (-self._clipped).log1p()
        super().__init__(self.probs.shape)

    @property
    def mean(self):
        return self.probs

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, shape):
        shape = self._extend_shape(drawn_shape("Bernoulli.sample", shape))
        was = _core.set_recording(False)
        try:
            probs = self.probs.expand(shape)
            return (uniform(shape, str(self.dtype).rpartition(".")[2]) < probs).astype(self.dtype)
        finally:
            _core.set_recording(was)

    def rsample(self, shape, temperature=1.0):
        """A relaxation with a gradient: logit(u) + logits over the temperature; its sigmoid is near 0 or 1."""
        shape = self._extend_shape(drawn_shape("Bernoulli.rsample", shape))
        temperature = temperature if is_tensor(temperature) else float(temperature)
        logits = self.logits.expand(shape)
        u = uniform(shape, str(self.dtype).rpartition(".")[2], 1e-7, 1.0)
        return (u.log() - (-u).log1p() + logits) / temperature

    def log_prob(self, value):
        value = self._like(self._clipped, value, strict=True)
        return value * self._clipped.log() + (1 - value) * (-self._clipped).log1p()

    def prob(self, value):
        return self.log_prob(value).exp()

    def cdf(self, value):
        value = self._like(self.probs, value, strict=True)
        shape = common_shape("Bernoulli.cdf", value.shape, self.probs.shape)
        value, failures = value.expand(shape), (1 - self.probs).expand(shape)
        return _core.where(value < 0, zeros_like(value), _core.where(value < 1, failures, ones_like(value)))

    def entropy(self):
        p = self._clipped
        return -(p * p.log() + (1 - p) * (-p).log1p())

    def kl_divergence(self, other):
        p, q = self._clipped, other._clipped
        return p * (p.log() - q.log()) + (1 - p) * ((-p).log1p() - (-q).log1p())


class Geometric(Distribution):
    """The number of failures before the first success; probs is the chance of success in (0, 1)."""

    def __init__(self, probs):
        self.probs = _probability("Geometric", probs)
        super().__init__(self.probs.shape)

    @staticmethod
    def _need_count(method, k):
        need(f"Geometric.{method}", "k", k, (numbers.Integral, _core.Tensor), "an int or a Tensor")

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    @property
    def stddev(self):
        return self.variance.sqrt()

    def pmf(self, k):
        self._need_count("pmf", k)
        return (1.0 - self.probs).pow(k) * self.probs

    def log_pmf(self, k):
        self._need_count("log_pmf", k)
        return self.pmf(k).log()

    def log_prob(self, value):
        return self.log_pmf(value)

    def entropy(self):
        q = 1.0 - self.probs
        return -(q * q.log() + self.probs * self.probs.log()) / self.probs

    def cdf(self, k):
        self._need_count("cdf", k)
        return 1.0 - (1.0 - self.probs).pow(k + 1)

    def sample(self, shape=()):
        was = _core.set_recording(False)
        try:
            return self.rsample(shape)
        finally:
            _core.set_recording(was)

    def rsample(self, shape=()):
        shape = self._extend_shape(shape_list("Geometric.rsample", shape))
        u = uniform(shape, str(self.probs.dtype).rpartition(".")[2], 1.1920928955078125e-07, 1.0)
        return (u.log() / (-self.probs).log1p()).floor()

    def kl_divergence(self, other):
        need("Geometric.kl_divergence", "other", other, Geometric, "a Geometric")
        p, q = self.probs, other.probs
        return p.log() - q.log() + (1.0 - p) / p * ((-p).log1p() - (-q).log1p())
