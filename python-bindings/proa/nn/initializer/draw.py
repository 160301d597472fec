"""Initializers that draw from the random generator, and calculate_gain. Their numbers are nn/initializers.yaml's."""
from ... import _core
from ...framework.random import program_seed
from . import table
from .initializer import Initializer, drawn, store


def calculate_gain(nonlinearity, param=None):
    """The gain that keeps the variance through a nonlinearity; param is leaky_relu's slope.

    >>> import proa as paddle
    >>> paddle.nn.initializer.calculate_gain("tanh")
    1.6666666666666667
    """
    if param is not None and not isinstance(param, (bool, int, float)):
        raise AssertionError(f"calculate_gain: param must be a number, got {param!r}")
    if nonlinearity == "leaky_relu":
        return table.leaky_relu_gain() if param is None else table.leaky_relu_gain(float(param))
    if nonlinearity not in table.GAINS:
        raise ValueError(f"calculate_gain: no gain is known for the nonlinearity {nonlinearity!r}")
    return table.GAINS[nonlinearity]


def _need(name, **values):
    for key, value in values.items():
        if value is None:
            raise AssertionError(f"{name}: {key} must not be None")


def _seed(var):
    """As in Paddle: with random_seed set, initializers of one kind and shape draw the same numbers."""
    return program_seed(startup=var.is_symbolic)


class Normal(Initializer):
    """Normal numbers."""

    def __init__(self, mean=table.NORMAL[0], std=table.NORMAL[1], name=None):
        _need("Normal", mean=mean, std=std)
        self._mean, self._std = mean, std

    def forward(self, var, block=None):
        self._check_block(block)
        store(var, _core.gaussian(var.shape, mean=float(self._mean), std=float(self._std), seed=_seed(var),
                                  dtype=drawn(var)))


def of_convolution(fan):
    """The default of convolutions' kernels whose sums have `fan` terms."""
    return Normal(0.0, table.convolution(fan))


class TruncatedNormal(Initializer):
    """Normal numbers, drawn again where they are more than two deviations from the mean."""

    def __init__(self, mean=table.TRUNCATED_NORMAL[0], std=table.TRUNCATED_NORMAL[1], name=None):
        _need("TruncatedNormal", mean=mean, std=std)
        self._mean, self._std = mean, std

    def forward(self, var, block=None):
        self._check(var, block)
        store(var, _core.truncated_gaussian_random(var.shape, mean=float(self._mean), std=float(self._std),
                                                   seed=_seed(var), dtype=drawn(var)))


def _uniform(var, low, high):
    store(var, _core.uniform(var.shape, dtype=drawn(var), min=float(low), max=float(high), seed=_seed(var)))


def _normal(var, std):
    store(var, _core.gaussian(var.shape, mean=0.0, std=std, seed=_seed(var), dtype=drawn(var)))


class Uniform(Initializer):
    """Uniform numbers in [low, high)."""

    def __init__(self, low=table.UNIFORM[0], high=table.UNIFORM[1], name=None):
        _need("Uniform", low=low, high=high)
        if high < low:
            raise AssertionError(f"Uniform: high must not be less than low, got {low} and {high}")
        self._low, self._high = low, high

    def forward(self, var, block=None):
        self._check_block(block)
        _uniform(var, self._low, self._high)


class _Xavier(Initializer):
    def __init__(self, fan_in=None, fan_out=None, name=None):
        self._fan_in, self._fan_out = fan_in, fan_out

    def _fans(self, var):
        own = self._compute_fans(var)
        return [o if given is None else given for given, o in zip((self._fan_in, self._fan_out), own)]


class XavierUniform(_Xavier):
    """Uniform numbers within ±√(6 / (fan_in + fan_out))."""

    def forward(self, var, block=None):
        self._check_block(block)
        limit = table.xavier_uniform(*self._fans(var))
        _uniform(var, -limit, limit)


class XavierNormal(_Xavier):
    """Normal numbers of deviation √(2 / (fan_in + fan_out))."""

    def forward(self, var, block=None):
        self._check_block(block)
        _normal(var, table.xavier_normal(*self._fans(var)))


class _Kaiming(Initializer):
    def __init__(self, fan_in=None, negative_slope=0.0, nonlinearity="relu"):
        self._fan_in, self._negative_slope, self._nonlinearity = fan_in, negative_slope, nonlinearity

    def _spread(self, var, of):
        fan_in = self._compute_fans(var)[0] if self._fan_in is None else self._fan_in
        return of(float(fan_in), calculate_gain(self._nonlinearity, self._negative_slope))


class KaimingUniform(_Kaiming):
    """Uniform numbers within ±gain·√(3 / fan_in)."""

    def forward(self, var, block=None):
        self._check(var, block)
        limit = self._spread(var, table.kaiming_uniform)
        _uniform(var, -limit, limit)


class KaimingNormal(_Kaiming):
    """Normal numbers of deviation gain / √fan_in."""

    def forward(self, var, block=None):
        self._check(var, block)
        _normal(var, self._spread(var, table.kaiming_normal))
