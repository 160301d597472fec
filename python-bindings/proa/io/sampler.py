"""Samplers: the order in which a dataset's indices are taken. Random orders come from NumPy's global generator,
as Paddle's do, so np.random.seed gives the same order in both."""


class Sampler:
    """Base of samplers: subclasses have __iter__ and usually __len__."""

    def __init__(self, data_source=None):
        self.data_source = data_source

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__}: a Sampler must have __iter__")


class SequenceSampler(Sampler):
    """0, 1, 2, …"""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """A random order, or with replacement num_samples random indices. generator: an iterator of indices."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement must be a bool, got {replacement!r}")
        if num_samples is not None and not replacement:
            raise ValueError("RandomSampler: num_samples needs replacement=True")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"RandomSampler: num_samples must be a positive int, got {self.num_samples!r}")

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        import numpy as np
        n = len(self.data_source)
        if self.generator:
            for _, index in zip(range(self.num_samples), self.generator):
                yield index
        else:
            count = self.num_samples if self.replacement else n
            yield from np.random.choice(np.arange(n), count, replace=self.replacement).tolist()

    def __len__(self):
        return self.num_samples


def _weighted(weights, num_samples, replacement):
    import numpy as np
    if hasattr(weights, "numpy"):
        weights = weights.numpy()
    if isinstance(weights, (list, tuple)):
        weights = np.array(weights)
    if not (isinstance(weights, np.ndarray) and 1 <= weights.ndim <= 2):
        raise AssertionError("WeightedRandomSampler: weights must be a 1-D or 2-D Tensor, array, list or tuple")
    weights = weights.reshape(-1, weights.shape[-1])
    if not (np.all(weights >= 0) and np.all(np.isfinite(weights))):
        raise AssertionError("WeightedRandomSampler: weights must be finite and not negative")
    positive = (weights > 0).sum(axis=1)
    if not np.all(positive > 0):
        raise AssertionError("WeightedRandomSampler: each row of weights needs a positive one")
    if not replacement and not np.all(positive >= num_samples):
        raise AssertionError(f"WeightedRandomSampler: {num_samples} samples without replacement need as many "
                             f"positive weights, got {positive.min()}")
    return np.array([np.random.choice(len(row), num_samples, replacement, row)
                     for row in weights / weights.sum(axis=1, keepdims=True)])


class WeightedRandomSampler(Sampler):
    """num_samples indices, each with the probability of its weight; for 2-D weights, that many a row."""

    def __init__(self, weights, num_samples, replacement=True):
        if not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(f"WeightedRandomSampler: num_samples must be a positive int, got {num_samples!r}")
        if not isinstance(replacement, bool):
            raise ValueError(f"WeightedRandomSampler: replacement must be a bool, got {replacement!r}")
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement

    def __iter__(self):
        return iter(_weighted(self.weights, self.num_samples, self.replacement).reshape(-1).tolist())

    def __len__(self):
        import numpy as np
        shape = np.shape(self.weights) if isinstance(self.weights, (list, tuple)) else tuple(self.weights.shape)
        return self.num_samples * (int(np.prod(shape)) // shape[-1])


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices):
        if len(indices) == 0:
            raise ValueError("SubsetRandomSampler: indices is empty")
        self.indices = indices

    def __iter__(self):
        from .. import _core
        return (self.indices[i] for i in _core.randperm(len(self.indices)).tolist())

    def __len__(self):
        return len(self.indices)
