"""DataLoader.from_generator and from_dataset of Paddle 2.0: loaders over Python generators."""
from .. import _core

__all__ = ["GeneratorLoader", "DatasetLoader"]


class GeneratorLoader:
    """Batches of a generator. Iterable: lists or {name: value} of feeds, tensors with return_list. Otherwise it feeds the
    program that its variables belong to, between start() and the EOFException of Executor.run, then reset()."""

    def __init__(self, feed_list=None, capacity=None, iterable=True, return_list=False):
        if not iterable and not feed_list:
            raise ValueError("DataLoader.from_generator: feed_list must name variables unless the loader is iterable")
        self._feeds, self._capacity = list(feed_list or []), capacity
        self._iterable, self._return_list = iterable, return_list or _eager(feed_list)
        self._batches = self._running = None
        if not iterable:
            self._feeds[0].block.program._loaders.append(self)

    @property
    def iterable(self):
        return self._iterable

    def set_sample_generator(self, reader, batch_size, drop_last=True, places=None):
        """reader() yields samples, tuples of one array a variable; batch_size of them are stacked."""
        if batch_size <= 0:
            raise AssertionError(f"set_sample_generator: batch_size must be positive, got {batch_size}")
        from .. import batch
        return self.set_sample_list_generator(batch(reader, batch_size, drop_last), places)

    def set_sample_list_generator(self, reader, places=None):
        """reader() yields lists of samples: tuples of one array a variable, or one array whose rows those are."""
        import numpy as np

        def batches():
            for samples in reader():
                rows = [s if isinstance(s, (list, tuple)) or getattr(s, "ndim", 0) else (s,) for s in samples]
                yield [self._shaped(i, np.stack([np.asarray(v) for v in column])) for i, column in enumerate(zip(*rows))]
        return self.set_batch_generator(batches, places)

    def set_batch_generator(self, reader, places=None):
        """reader() yields batches: a list of arrays or tensors, one a variable."""
        self._batches = reader
        return self

    def _shaped(self, i, value):
        """A column in the dtype of its variable; flat samples take the shape that the variable has."""
        if i >= len(self._feeds):
            return value
        from ..framework.dtype import dtype_name
        shape, dtype = list(self._feeds[i].declared_shape), dtype_name(self._feeds[i].dtype)
        if len(shape) != value.ndim and shape[:1] == [-1] and all(n > 0 for n in shape[1:]):
            value = value.reshape(shape)
        return value if dtype == "bfloat16" else value.astype(dtype, copy=False)

    def _made(self, batch):
        batch = _listed(batch)
        if self._return_list:
            return [v if isinstance(v, _core.Tensor) else _core.to_tensor(v) for v in batch]
        return {feed.name: value for feed, value in zip(self._feeds, batch)}

    def _source(self):
        if self._batches is None:
            raise AssertionError("DataLoader.from_generator: call set_sample_generator, set_sample_list_generator or "
                                 "set_batch_generator first")
        return iter(self._batches())

    def __call__(self):
        return iter(self)

    def __iter__(self):
        if not self._iterable:
            raise AssertionError("DataLoader.from_generator: this loader is not iterable; call start()")
        for batch in self._source():
            yield self._made(batch) if self._return_list else [self._made(batch)]

    def start(self):
        """From now on Executor.run takes the next batch."""
        if self._iterable:
            raise AssertionError("DataLoader.from_generator: an iterable loader is iterated, not started")
        self._running = self._source()

    def reset(self):
        """Forgets what is left of the batches."""
        self._running = None

    def next_feed(self):
        """{name: value} of the next batch, for Executor.run; EOFException behind the last."""
        if self._running is None:
            return {}
        for batch in self._running:
            return {feed.name: value for feed, value in zip(self._feeds, _listed(batch))}
        from ..fluid.core import EOFException
        raise EOFException("There is no next data.")


class DatasetLoader:
    """Batches of a paddle.distributed.InMemoryDataset or QueueDataset as {name: value}."""

    def __init__(self, dataset, drop_last=True):
        if not hasattr(dataset, "_batches"):
            raise AssertionError("DataLoader.from_dataset: dataset must be an InMemoryDataset or a QueueDataset, got "
                                 f"{type(dataset).__name__}")
        self._dataset, self._drop_last = dataset, drop_last

    def __iter__(self):
        for feed in self._dataset._batches(self._drop_last):
            yield [feed]

    def __call__(self):
        return iter(self)


def _listed(batch):
    """The values of a batch: one that is no list is its only one."""
    return list(batch) if isinstance(batch, (list, tuple)) else [batch]


def _eager(feed_list):
    from ..framework.mode import in_dynamic_mode
    return not feed_list and in_dynamic_mode()
