"""paddle.distribution: probability distributions with densities, entropies, KL divergences and sampling."""
from .bernoulli import Bernoulli, Geometric
from .beta import Beta, Dirichlet
from .categorical import Categorical, Multinomial
from .distribution import Distribution, ExponentialFamily, Independent
from .kl import kl_divergence, register_kl
from .location import Cauchy, Gumbel, Laplace
from .normal import LogNormal, Normal
from .transform import *
from .transform import __all__ as _transforms
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform

__all__ = [*_transforms, "Bernoulli", "Beta", "Categorical", "Cauchy", "Dirichlet", "Distribution", "ExponentialFamily",
           "Geometric", "Gumbel", "Independent", "Laplace", "LogNormal", "Multinomial", "Normal",
           "TransformedDistribution", "Uniform", "kl_divergence", "register_kl"]
