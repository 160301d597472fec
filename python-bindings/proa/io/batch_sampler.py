"""Batch samplers: lists of indices, one a batch; DistributedBatchSampler deals them out to ranks."""
import os

from .dataset import IterableDataset
from .sampler import RandomSampler, Sampler, SequenceSampler


def rank_and_size():
    """This process's rank and the number of processes, as paddle.distributed.launch sets them."""
    return int(os.environ.get("PADDLE_TRAINER_ID", "0")), int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


def _positive(owner, name, value):
    if not isinstance(value, int) or value <= 0:
        raise AssertionError(f"{owner}: {name} must be a positive int, got {value!r}")
    return value


def _boolean(owner, name, value):
    if not isinstance(value, bool):
        raise AssertionError(f"{owner}: {name} must be a bool, got {value!r}")
    return value


def _batches(indices, size, drop_last):
    batch = []
    for i in indices:
        batch.append(i)
        if len(batch) == size:
            yield batch
            batch = []
    if batch and not drop_last:
        yield batch


class BatchSampler(Sampler):
    """Batches of the indices of a dataset (in order or shuffled) or of a sampler."""

    def __init__(self, dataset=None, sampler=None, shuffle=False, batch_size=1, drop_last=False):
        if dataset is None:
            if not isinstance(sampler, Sampler):
                raise AssertionError(f"BatchSampler: give a dataset or a paddle.io.Sampler, got {sampler!r}")
            if shuffle:
                raise AssertionError("BatchSampler: shuffle needs a dataset; a sampler has its own order")
            self.sampler = sampler
        else:
            if isinstance(dataset, IterableDataset):
                raise AssertionError("BatchSampler: an IterableDataset has no indices")
            if sampler is not None:
                raise AssertionError("BatchSampler: give a dataset or a sampler, not both")
            self.sampler = (RandomSampler if _boolean("BatchSampler", "shuffle", shuffle) else SequenceSampler)(dataset)
        self.batch_size = _positive("BatchSampler", "batch_size", batch_size)
        self.drop_last = _boolean("BatchSampler", "drop_last", drop_last)

    def __iter__(self):
        return _batches(self.sampler, self.batch_size, self.drop_last)

    def __len__(self):
        return (len(self.sampler) + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size


class DistributedBatchSampler(BatchSampler):
    """This rank's share of the batches; the dataset is padded so that every rank gets equally many samples."""

    def __init__(self, dataset, batch_size, num_replicas=None, rank=None, shuffle=False, drop_last=False):
        who = "DistributedBatchSampler"
        self.dataset = dataset
        self.batch_size = _positive(who, "batch_size", batch_size)
        self.shuffle = _boolean(who, "shuffle", shuffle)
        self.drop_last = _boolean(who, "drop_last", drop_last)
        here, size = rank_and_size()
        self.nranks = size if num_replicas is None else _positive(who, "num_replicas", num_replicas)
        if rank is not None and (not isinstance(rank, int) or rank < 0):
            raise AssertionError(f"{who}: rank must be an int of at least 0, got {rank!r}")
        self.local_rank = here if rank is None else rank
        self.epoch = 0
        self.num_samples = -(-len(dataset) // self.nranks)
        self.total_size = self.num_samples * self.nranks

    def __iter__(self):
        import numpy as np
        indices = list(range(len(self.dataset)))
        while indices and len(indices) < self.total_size:
            indices += indices[:self.total_size - len(indices)]
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(indices)
            self.epoch += 1
        if self.nranks > 1:
            indices = self._share(indices)
        return _batches(indices, self.batch_size, self.drop_last)

    def _share(self, indices):
        """Whole rounds of batches are dealt in turn; what is left is cut into equal parts."""
        rest = self.total_size % (self.batch_size * self.nranks)
        part, full = rest // self.nranks, self.total_size - rest
        mine = []
        for i in range(self.local_rank * self.batch_size, full, self.batch_size * self.nranks):
            mine += indices[i:i + self.batch_size]
        return mine + indices[full + self.local_rank * part:full + (self.local_rank + 1) * part]

    def __len__(self):
        return (self.num_samples + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size

    def set_epoch(self, epoch):
        """Sets the number that seeds the next shuffle."""
        self.epoch = epoch
