"""Random ops: ranges, moments, seeds, and the same bits whatever the thread count. Their values have no reference."""
import numpy as np
import pytest
from scipy import stats

from conftest import BUILD  # noqa: F401 - puts the package on the path
import proa
from proa import _core

N = 200_000
DRAWS = {
    "uniform": lambda: _core.uniform(shape=[N], dtype="float64", min=2.0, max=5.0),
    "gaussian": lambda: _core.gaussian(shape=[N], dtype="float64", mean=2.0, std=0.5),
    "truncated_gaussian_random": lambda: _core.truncated_gaussian_random(shape=[N], dtype="float32", mean=1.0, std=0.5),
    "randint": lambda: _core.randint(low=-5, high=5, shape=[N], dtype="int64"),
    "randperm": lambda: _core.randperm(n=N),
    "bernoulli": lambda: _core.bernoulli(x=_core.from_numpy(np.full(N, 0.3))),
    "exponential": lambda: _core.exponential(x=_core.from_numpy(np.zeros(N)), lam=2.5),
    "poisson": lambda: _core.poisson(x=_core.from_numpy(np.full(N, 3.5))),
    "multinomial": lambda: _core.multinomial(x=_core.from_numpy(np.array([1.0, 0.0, 5.0, 4.0])), num_samples=N,
                                             replacement=True),
    "dropout": lambda: _core.dropout(x=_core.from_numpy(np.ones(N, np.float32)), p=0.3)[0],
}


def draw(name, seed=7):
    _core.seed(seed)
    return np.array(DRAWS[name]().numpy())


@pytest.mark.parametrize("name", DRAWS)
def test_seeds_decide(name):
    first = draw(name)
    assert np.array_equal(first, draw(name))
    assert not np.array_equal(first, draw(name, 8))
    _core.seed(7)
    DRAWS[name]()
    assert not np.array_equal(first, np.array(DRAWS[name]().numpy()))  # the generator moves on


@pytest.mark.parametrize("name", DRAWS)
def test_threads_do_not(name):
    try:
        _core.set_flag("num_threads", "1")
        one = draw(name)
        _core.set_flag("num_threads", "2")
        assert np.array_equal(one, draw(name))
    finally:
        _core.set_flag("num_threads", "0")


CONTINUOUS = {
    "uniform": stats.uniform(2, 3),
    "gaussian": stats.norm(2, 0.5),
    "truncated_gaussian_random": stats.truncnorm(-2, 2, 1, 0.5),
    "exponential": stats.expon(scale=1 / 2.5),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_distributions(name):
    """Kolmogorov and Smirnov's distance and the moments; a wrong scale or tail is off by far more."""
    x, law = draw(name).astype(np.float64), CONTINUOUS[name]
    assert stats.kstest(x, law.cdf).statistic < 2.2 / np.sqrt(N)
    assert abs(x.mean() - law.mean()) < 5 * law.std() / np.sqrt(N)
    assert abs(x.std() / law.std() - 1) < 0.02
    low, high = law.support()
    assert x.min() >= low - 1e-6 and x.max() <= high + 1e-6


def test_randint_is_even_and_half_open():
    counts = np.unique(draw("randint"), return_counts=True)
    assert counts[0].tolist() == list(range(-5, 5))
    assert stats.chisquare(counts[1]).pvalue > 1e-6


def test_randperm_is_a_permutation():
    x = draw("randperm")
    assert np.array_equal(np.sort(x), np.arange(N))
    assert abs(np.corrcoef(x, np.arange(N))[0, 1]) < 5 / np.sqrt(N)
    firsts = [np.array(_core.randperm(n=5).numpy())[0] for _ in range(2000)]
    assert stats.chisquare(np.bincount(firsts, minlength=5)).pvalue > 1e-6


def test_bernoulli_follows_each_probability():
    p = np.tile([0.0, 0.25, 0.75, 1.0], N // 4)
    _core.seed(3)
    x = np.array(_core.bernoulli(x=_core.from_numpy(p)).numpy()).reshape(-1, 4)
    assert set(np.unique(x)) == {0.0, 1.0}
    assert np.all(np.abs(x.mean(0) - [0, 0.25, 0.75, 1]) <= [0, 0.01, 0.01, 0])


def test_dropout_keeps_the_mean():
    x = draw("dropout")
    assert set(np.unique(x)) == {0, np.float32(1 / 0.7)}
    assert abs((x == 0).mean() - 0.3) < 5 * np.sqrt(0.21 / N)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_floating_dtype(dtype):
    t = _core.uniform(shape=[1000], dtype=dtype, min=0.0, max=1.0)
    assert str(t.dtype) == f"paddle.{dtype}" and list(t.shape) == [1000]
    x = np.array(_core.cast(t, "float64").numpy())
    assert 0 <= x.min() and x.max() <= 1 and abs(x.mean() - 0.5) < 0.06


def test_an_own_seed_stands_above_the_generator():
    one = np.array(_core.gaussian(shape=[100], seed=5).numpy())
    _core.seed(99)
    assert np.array_equal(one, np.array(_core.gaussian(shape=[100], seed=5).numpy()))


@pytest.mark.parametrize("mean", [0.0, 0.4, 9.5, 10.5, 250.0])
def test_poisson(mean):
    _core.seed(11)
    x = np.array(_core.poisson(x=_core.from_numpy(np.full(N, mean))).numpy())
    law = stats.poisson(mean)
    assert np.array_equal(x, np.floor(x)) and x.min() >= 0
    assert abs(x.mean() - mean) <= 5 * np.sqrt(mean / N)
    values = np.arange(int(law.ppf(0.001)), int(law.ppf(0.999)) + 1) if mean else np.arange(1)
    seen = np.array([(x == v).mean() for v in values])
    assert np.abs(seen - law.pmf(values)).max() < 5 * np.sqrt(law.pmf(values).max() / N) + 1e-12


def test_multinomial_with_replacement():
    counts = np.bincount(draw("multinomial"), minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], N * np.array([0.1, 0.5, 0.4])).pvalue > 1e-6


def test_multinomial_without_replacement():
    """The first draw goes by the weights; the second by what is left; none comes twice."""
    _core.seed(3)
    weights = np.tile(np.array([1.0, 0.0, 5.0, 4.0]), (20_000, 1))
    x = np.array(_core.multinomial(x=_core.from_numpy(weights), num_samples=3).numpy())
    assert all(sorted(row) == [0, 2, 3] for row in x.tolist())
    assert stats.chisquare(np.bincount(x[:, 0], minlength=4)[[0, 2, 3]], 20_000 * np.array([0.1, 0.5, 0.4])).pvalue > 1e-6
    after_two = x[x[:, 0] == 2, 1]
    assert abs((after_two == 3).mean() - 0.8) < 5 * np.sqrt(0.16 / len(after_two))


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -1.0], [1.0, np.inf], [np.nan, 1.0]])
def test_multinomial_refuses(weights):
    with pytest.raises(ValueError, match="multinomial"):
        _core.multinomial(x=_core.from_numpy(np.array(weights)), num_samples=1)
    with pytest.raises(ValueError, match="poisson"):
        _core.poisson(x=_core.from_numpy(np.array([-1.0])))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_gumbel_softmax_samples_in_every_dtype(dtype):
    """Each class as often as its probability; a noise that is rounded before its logarithm would be infinite."""
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    logits = proa.to_tensor(np.tile(np.log(weights), (20_000, 1))).astype(dtype)
    drawn = proa.nn.functional.gumbel_softmax(logits, hard=True).astype("float32").numpy()
    assert np.array_equal(drawn.sum(1), np.ones(20_000))
    assert np.allclose(drawn.mean(0), weights, atol=0.02)
