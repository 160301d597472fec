"""The Dirichlet distribution, and the beta distribution, its case of two components."""
from .. import _core
from .._errors import need_attribute, of_kind
from ..tensor import ones_like, zeros_like
from .distribution import ExponentialFamily, broadcast, drawn_shape, gaussian, is_tensor, name_of, need_elements, uniform


def _gamma(shape_parameter, shape):
    """Draws of gamma(a, 1) by Marsaglia and Tsang (2000); for a < 1 by way of a + 1."""
    dtype = name_of(shape_parameter.dtype)
    a = shape_parameter.expand(list(shape))
    small = (a < 1).astype(dtype)
    d = a + small - 1.0 / 3.0
    c = 1.0 / (9.0 * d).sqrt()
    made, open_ = zeros_like(a), ones_like(a)
    for _ in range(64):  # each round accepts more than nine in ten
        x, u = gaussian(shape, dtype), uniform(shape, dtype, 1e-10, 1.0)
        v = (1.0 + c * x).pow(3)
        fits = (v > 0).astype(dtype)
        bound = 0.5 * x * x + d - d * v + d * _core.where(v > 0, v, ones_like(v)).log()
        taken = open_ * fits * (u.log() < bound).astype(dtype)
        made = made * (1 - taken) + d * v * taken
        open_ = open_ * (1 - taken)
        if not bool((open_ > 0).any()):
            break
    return made * uniform(shape, dtype, 1e-10, 1.0).pow(small / a)


def _need_own(own, other):
    if not isinstance(other, type(own)):
        raise NotImplementedError(f"{type(own).__name__}.kl_divergence: no rule for a divergence from "
                                  f"{type(other).__name__}; paddle.distribution.register_kl adds one")


class Dirichlet(ExponentialFamily):
    """Parts of a whole, with concentrations above 0 along the last dim."""

    def __init__(self, concentration):
        need_attribute("Dirichlet", "dim", concentration=concentration)
        if not is_tensor(concentration) or len(concentration.shape) < 1:
            raise ValueError("Dirichlet: concentration must be a Tensor of at least one dim")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:])

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def variance(self):
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def sample(self, shape=()):
        shape = self._extend_shape(drawn_shape("Dirichlet.sample", shape))
        was = _core.set_recording(False)
        try:
            drawn = _gamma(self.concentration, shape)
            return drawn / drawn.sum(-1, keepdim=True)
        finally:
            _core.set_recording(was)

    def prob(self, value):
        return self.log_prob(value).exp()

    def log_prob(self, value):
        a = self.concentration
        if not is_tensor(value):
            raise of_kind(f"Dirichlet.log_prob: value must be a Tensor, got {type(value).__name__}")
        return (value.log() * (a - 1.0)).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self):
        a = self.concentration
        total, k = a.sum(-1), a.shape[-1]
        return a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma() - ((a - 1.0) * a.digamma()).sum(-1)

    def kl_divergence(self, other):
        _need_own(self, other)
        a, b = self.concentration, other.concentration
        total = a.sum(-1)
        inner = (a - b) * (a.digamma() - total.digamma().unsqueeze(-1))
        return total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1) + inner.sum(-1)


class Beta(ExponentialFamily):
    """Values in (0, 1) with density ∝ x^(alpha−1) · (1−x)^(beta−1)."""

    def __init__(self, alpha, beta):
        self.alpha, self.beta = broadcast("Beta", alpha=alpha, beta=beta)
        need_elements("Beta", "alpha", self.alpha)
        self._dirichlet = Dirichlet(_core.stack([self.alpha, self.beta], -1))
        super().__init__(self._dirichlet.batch_shape)

    @property
    def mean(self):
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self):
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total.pow(2) * (total + 1))

    def prob(self, value):
        return self.log_prob(value).exp()

    def log_prob(self, value):
        return self._dirichlet.log_prob(_core.stack([value, 1.0 - value], -1))

    def sample(self, shape=()):
        return self._dirichlet.sample(shape)[..., 0]

    def entropy(self):
        return self._dirichlet.entropy()

    def kl_divergence(self, other):
        _need_own(self, other)
        return self._dirichlet.kl_divergence(other._dirichlet)
