"""The number of a DataLoader's workers, by measuring (incubate.autotune)."""
import copy
import os
import time

from .batch_sampler import BatchSampler
from .dataset import IterableDataset

_WARM_UP = 2   # batches that are not counted: workers start with them
_WORTH = 0.75  # workers are added where a batch takes less than this part of the time
_STEP = 2      # workers


def _trial(loader, steps):
    """The loader over at most `steps` batches in the data set's order; None: its batches are no BatchSampler's."""
    sampler = loader.batch_sampler
    if not isinstance(sampler, BatchSampler) or isinstance(loader.dataset, IterableDataset):
        return None
    trial, count, size = copy.copy(loader), len(loader.dataset), sampler.batch_size
    trial.batch_sampler = [list(range(at, min(at + size, count))) for at in range(0, min(count, size * steps), size)]
    trial.persistent_workers = False
    return trial


def _seconds(trial, workers, shared):
    """The mean time of a batch."""
    trial.num_workers, trial.use_shared_memory = workers, shared and workers > 0
    costs, start = [], time.perf_counter()
    for _ in trial:
        now = time.perf_counter()
        costs.append(now - start)
        start = now
    counted = costs[_WARM_UP:] or costs
    return sum(counted) / len(counted) if counted else 0.0


def best_workers(loader, steps, shared):
    """The number of workers, of 0, 2, 4, … below half of the cores, beyond which more are not worth it. shared: batches
    of workers come through shared memory."""
    trial = _trial(loader, steps) if hasattr(os, "fork") else None
    if trial is None:
        return loader.num_workers
    best, least = 0, float("inf")
    for workers in range(0, max(1, (os.cpu_count() or 1) // 2), _STEP):
        taken = _seconds(trial, workers, shared)
        if taken >= _WORTH * least:
            break
        best, least = workers, taken
    return best
