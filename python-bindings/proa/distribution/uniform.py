"""The continuous uniform distribution on [low, high)."""
from .distribution import Distribution, drawn_shape, need_seed, tensors, uniform


class Uniform(Distribution):
    """Uniform between low and high: numbers, arrays or tensors."""

    def __init__(self, low, high, name=None):
        self.name = name or "Uniform"
        self.low, self.high, self.dtype, self.all_arg_is_float = tensors("Uniform", low, high)
        super().__init__(self.low.shape)

    def sample(self, shape, seed=0):
        shape = drawn_shape("Uniform.sample", shape, strict=True)
        need_seed("Uniform.sample", seed)
        batch = (self.low + self.high).shape
        drawn = uniform(shape + list(batch), self.dtype) * (self.high - self.low) + self.low
        return drawn.reshape(shape) if self.all_arg_is_float else drawn

    def _inside(self, value):
        return ((self.low < value) & (value < self.high)).astype(value.dtype)

    def log_prob(self, value):
        value = self._like(self.low, value)
        return self._inside(value).log() - (self.high - self.low).log()

    def probs(self, value):
        value = self._like(self.low, value)
        return self._inside(value) / (self.high - self.low)

    def entropy(self):
        return (self.high - self.low).log()
