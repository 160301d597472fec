"""TransformedDistribution: the distribution of a random variable after a chain of invertible transforms."""
from .distribution import Distribution, Independent
from .transform import ChainTransform, Transform, sum_last


class TransformedDistribution(Distribution):
    """The results of transforms, one after another, of draws from base.

    >>> base = paddle.distribution.Normal(paddle.zeros([2]), paddle.ones([2]))
    >>> made = paddle.distribution.TransformedDistribution(base, [paddle.distribution.ExpTransform()])
    >>> made.sample([3]).shape
    [3, 2]
    """

    def __init__(self, base, transforms):
        if not isinstance(base, Distribution):
            raise TypeError(f"TransformedDistribution: base must be a Distribution, got {type(base).__name__}")
        if not isinstance(transforms, (list, tuple)):
            raise TypeError("TransformedDistribution: transforms must be a list or tuple of Transforms, "
                            f"got {type(transforms).__name__}")
        if not all(isinstance(t, Transform) for t in transforms):
            raise TypeError("TransformedDistribution: transforms must be Transforms")
        self._base, self._transforms = base, transforms
        if not transforms:
            super().__init__(base.batch_shape, base.event_shape)
            return
        chain, shape = ChainTransform(transforms), base.batch_shape + base.event_shape
        need = chain._domain.event_rank
        if len(shape) < need:
            raise ValueError(f"TransformedDistribution: base must have at least {need} dims, got {len(shape)}")
        if need > len(base.event_shape):
            base = Independent(base, need - len(base.event_shape))
        made = tuple(chain.forward_shape(base.batch_shape + base.event_shape))
        cut = len(made) - chain._codomain.event_rank - max(len(base.event_shape) - need, 0)
        super().__init__(made[:cut], made[cut:])

    def _transformed(self, x):
        for t in self._transforms:
            x = t.forward(x)
        return x

    def sample(self, shape=()):
        """Draws without a gradient."""
        return self._transformed(self._base.sample(shape))

    def rsample(self, shape=()):
        """Draws through which gradients flow to the base's parameters."""
        return self._transformed(self._base.rsample(shape))

    def log_prob(self, value):
        """The base's, where the inverses put value, less the logarithms of the Jacobians' determinants."""
        total, y, rank = 0.0, value, len(self.event_shape)
        for t in reversed(self._transforms):
            x = t.inverse(y)
            rank += t._domain.event_rank - t._codomain.event_rank
            total = total - sum_last(t.forward_log_det_jacobian(x), rank - t._domain.event_rank)
            y = x
        return total + sum_last(self._base.log_prob(y), rank - len(self._base.event_shape))
