"""paddle.distribution: densities, entropies, divergences with gradients; samples by their shapes and moments."""
import numpy as np
import paddle
from paddle.distribution import (Bernoulli, Beta, Categorical, Cauchy, Dirichlet, Distribution, Geometric, Gumbel,
                                 Independent, Laplace, LogNormal, Multinomial, Normal, Uniform, kl_divergence)

from parity import case, raised, rand

D = "paddle.distribution."


def moments(x, mean, std, tol):
    """The sample agrees with what it should be."""
    x = np.asarray(x.numpy(), "float64")
    return bool(abs(x.mean() - mean) < tol and abs(x.std() - std) < tol), list(x.shape)


@case(D + "Normal", D + "Normal.log_prob", D + "Normal.probs", D + "Normal.entropy", D + "Normal.kl_divergence",
      D + "Distribution", "paddle.distribution", tol=3e-7)  # Paddle adds its constants in float32
def normal():
    loc, scale, value = rand(3), rand(3, low=0.5, high=2), rand(2, 3)
    n, other = Normal(loc, scale), Normal(rand(3), rand(3, low=0.5, high=2))
    plain = Normal(0.5, 2.0)
    arrays = Normal(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    return [n.log_prob(value), n.probs(value), n.entropy(), n.kl_divergence(other), kl_divergence(n, other), n.mean,
            n.variance, n.batch_shape, n.event_shape, plain.entropy(), plain.log_prob(paddle.to_tensor(0.3)),
            arrays.log_prob(paddle.to_tensor([0.5, 0.5], dtype="float64")), arrays.entropy(), Normal(1, [1.0, 2.0]).mean,
            isinstance(n, Distribution), raised(lambda: Normal(loc, 1.0))]


@case(D + "Normal.sample", grad=False)
def normal_samples():
    s = Normal(1.0, 2.0).sample([4000])
    t = Normal(paddle.to_tensor([0.0, 10.0]), paddle.to_tensor([1.0, 1.0])).sample([3000])
    return [moments(s, 1, 2, 0.2), moments(t[:, 1], 10, 1, 0.1), t.shape, s.dtype == paddle.float32,
            Normal(0.0, 1.0).sample().shape, Normal([0.0], [1.0]).sample((2, 3)).shape, Normal(0.0, 1.0).rsample([5]).shape]


@case(D + "Uniform", D + "Uniform.log_prob", D + "Uniform.probs", D + "Uniform.entropy", D + "Uniform.sample", grad=False)
def uniforms():
    u = Uniform(paddle.to_tensor([0.0, 1.0]), paddle.to_tensor([1.0, 4.0]))
    value = paddle.to_tensor([0.5, 3.0])
    s = Uniform(2.0, 4.0).sample([4000])
    return [u.log_prob(value), u.probs(value), u.entropy(), u.probs(paddle.to_tensor([2.0, 2.0])), u.sample([2]).shape,
            moments(s, 3, 2 / 12 ** 0.5, 0.1), s.shape, Uniform(0, 1).entropy(), u.batch_shape]


@case(D + "Categorical", D + "Categorical.log_prob", D + "Categorical.probs", D + "Categorical.entropy",
      D + "Categorical.kl_divergence")
def categorical():
    logits = rand(4, low=0.1, high=2)
    table = rand(3, 4, low=0.1, high=2)
    c, many = Categorical(logits), Categorical(table)
    value = paddle.to_tensor([2, 1, 3])
    return [c.entropy(), many.entropy(), c.kl_divergence(Categorical(rand(4, low=0.1, high=2))), c.probs(value),
            many.probs(value), many.probs(paddle.to_tensor([[0, 1], [2, 3], [1, 1]])), c.log_prob(value),
            Categorical([0.2, 0.8]).probs(paddle.to_tensor([1]))]


@case(D + "Categorical.sample", grad=False)
def categorical_samples():
    c = Categorical(paddle.to_tensor([0.0, 1.0, 2.0]))
    s = c.sample([6000])
    share = np.bincount(s.numpy(), minlength=3) / 6000
    return [bool(np.abs(share - np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()).max() < 0.04), s.dtype == paddle.int64,
            Categorical(paddle.ones([2, 3])).sample([4, 5]).shape]


@case(D + "Distribution.entropy", D + "Distribution.log_prob", D + "Distribution.sample", D + "Distribution.probs",
      D + "Distribution.kl_divergence", grad=False)
def base():
    d = Distribution((2,), (3,))
    return [d.batch_shape, d.event_shape, *(raised(f) for f in (
        d.entropy, d.sample, lambda: d.log_prob(1), lambda: d.probs(1), lambda: d.kl_divergence(d), lambda: d.mean))]


@case(D + "Bernoulli", D + "Bernoulli.log_prob", D + "Bernoulli.entropy", D + "Bernoulli.cdf", D + "Bernoulli.mean",
      D + "Bernoulli.prob", D + "Bernoulli.variance", D + "Bernoulli.kl_divergence", D + "Bernoulli.sample", grad=False)  # Paddle's own backward crashes
def bernoulli():
    p = rand(4, low=0.1, high=0.9)
    b, value = Bernoulli(p), paddle.to_tensor([1.0, 0.0, 1.0, 0.0])
    return [b.log_prob(value), b.prob(value), b.entropy(), b.mean, b.variance, b.cdf(paddle.to_tensor([-1.0, 0.5, 1, 2])),
            b.kl_divergence(Bernoulli(rand(4, low=0.1, high=0.9))), b.sample([2]).shape, Bernoulli(0.3).entropy(),
            moments(Bernoulli(0.3).sample([4000]), 0.3, 0.21 ** 0.5, 0.05), Bernoulli(0.3).rsample([2]).shape]


@case(D + "Beta", D + "Beta.log_prob", D + "Beta.prob", D + "Beta.entropy", D + "Beta.mean", D + "Beta.variance",
      D + "Beta.sample", D + "Dirichlet", D + "Dirichlet.log_prob", D + "Dirichlet.entropy", D + "Dirichlet.mean",
      D + "Dirichlet.prob", D + "Dirichlet.sample", D + "Dirichlet.variance", D + "kl_divergence",
      tol=1e-5, grad=False)  # lgamma and digamma in float32; Paddle's own backward crashes
def beta_dirichlet():
    b, other = Beta(rand(3, low=0.5, high=3), rand(3, low=0.5, high=3)), Beta(2.0, 1.5)
    d = Dirichlet(rand(2, 3, low=0.5, high=3))
    value = paddle.to_tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    half = paddle.to_tensor([0.5, 0.2, 0.7])
    return [b.log_prob(half), b.prob(half), b.mean, b.variance, b.entropy(), other.mean, d.log_prob(value), d.prob(value),
            d.entropy(), d.mean, d.variance, kl_divergence(b, Beta(rand(3, low=0.5, high=3), rand(3, low=0.5, high=3))),
            kl_divergence(d, Dirichlet(rand(2, 3, low=0.5, high=3))), b.sample([5]).shape, d.sample([5]).shape,
            moments(Beta(0.5, 2.0).sample([3000]), 0.2, (1 / (6.25 * 3.5)) ** 0.5, 0.04),
            b.batch_shape, d.batch_shape, d.event_shape]


@case(D + "Laplace", D + "Laplace.log_prob", D + "Laplace.entropy", D + "Laplace.cdf", D + "Laplace.icdf",
      D + "Laplace.mean", D + "Laplace.stddev", D + "Laplace.variance", D + "Laplace.kl_divergence", D + "Laplace.sample",
      D + "Laplace.rsample", D + "Gumbel", D + "Gumbel.log_prob", D + "Gumbel.prob", D + "Gumbel.cdf", D + "Gumbel.entropy",
      D + "Gumbel.mean", D + "Gumbel.variance", D + "Gumbel.stddev", D + "Gumbel.sample", D + "Gumbel.rsample",
      D + "Cauchy", D + "Cauchy.log_prob", D + "Cauchy.prob", D + "Cauchy.cdf", D + "Cauchy.entropy", D + "Cauchy.sample",
      D + "Cauchy.rsample", D + "Cauchy.kl_divergence", grad=False)  # Paddle's own backward crashes
def locations():
    out = []
    for kind in (Laplace, Gumbel, Cauchy):
        one = kind(rand(3), rand(3, low=0.5, high=2))
        value = rand(3)
        out += [one.log_prob(value), one.cdf(value), one.entropy(), one.sample([2]).shape, one.rsample([2]).shape]
        if kind is not Laplace:
            out.append(one.prob(value))
        if kind is not Gumbel:
            out.append(one.kl_divergence(kind(rand(3), rand(3, low=0.5, high=2))))
        out += [one.mean, one.variance, one.stddev] if kind is not Cauchy else [raised(lambda: one.mean)]
    out.append(Laplace(0.0, 1.0).icdf(paddle.to_tensor([0.1, 0.5, 0.9])))
    out.append(moments(Laplace(1.0, 1.0).sample([6000]), 1, 2 ** 0.5, 0.15))
    return out + [moments(Gumbel(paddle.to_tensor(0.0), paddle.to_tensor(1.0)).sample([6000]), 0.577, 1.283, 0.15)]


@case(D + "LogNormal", D + "LogNormal.log_prob", D + "LogNormal.probs", D + "LogNormal.entropy", D + "LogNormal.mean",
      D + "LogNormal.variance", D + "LogNormal.kl_divergence", D + "LogNormal.sample", D + "LogNormal.rsample")
def lognormal():
    n, value = LogNormal(rand(3), rand(3, low=0.5, high=1)), rand(3, low=0.5, high=2)
    return [n.log_prob(value), n.probs(value), n.entropy(), n.mean, n.variance, n.sample([2]).shape, n.rsample([2]).shape,
            n.kl_divergence(LogNormal(rand(3), rand(3, low=0.5, high=1)))]


@case(D + "Geometric", D + "Geometric.pmf", D + "Geometric.log_pmf", D + "Geometric.entropy", D + "Geometric.cdf",
      D + "Geometric.mean", D + "Geometric.variance", D + "Geometric.stddev", D + "Geometric.sample",
      D + "Geometric.rsample", grad=False)  # not kl_divergence: Paddle's is that of one trial
def geometric():
    g = Geometric(rand(3, low=0.2, high=0.8))
    k = paddle.to_tensor([0.0, 1.0, 4.0])
    return [g.pmf(k), g.log_pmf(k), g.entropy(), g.cdf(k), g.mean, g.variance, g.stddev, g.sample([4]).shape,
            g.rsample([4]).shape]


@case(D + "Multinomial", D + "Multinomial.log_prob", D + "Multinomial.prob", D + "Multinomial.mean",
      D + "Multinomial.variance", D + "Multinomial.entropy", D + "Multinomial.sample", D + "Independent",
      D + "Independent.log_prob", D + "Independent.entropy", D + "Independent.prob", D + "Independent.sample",
      tol=1e-5, grad=False)  # lgamma in float32; Paddle's own backward crashes
def multinomial_independent():
    m = Multinomial(5, rand(4, low=0.1, high=1))
    value = paddle.to_tensor([1.0, 2.0, 0.0, 2.0])
    one = Independent(Normal(rand(2, 3), rand(2, 3, low=0.5, high=1)), 1)
    return [m.log_prob(value), m.prob(value), m.mean, m.variance, m.entropy(), m.sample([3]).shape,
            m.sample([3]).sum(-1), m.batch_shape, m.event_shape, one.log_prob(rand(2, 3)), one.entropy(),
            one.prob(rand(2, 3)), one.sample([2]).shape, one.batch_shape, one.event_shape]
