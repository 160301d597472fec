"""paddle.io: datasets, samplers and the DataLoader."""
from .batch_sampler import BatchSampler, DistributedBatchSampler
from .collate import default_collate_fn, default_convert_fn
from .dataset import (ChainDataset, ComposeDataset, ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset,
                      random_split)
from .reader import DataLoader
from .sampler import RandomSampler, Sampler, SequenceSampler, SubsetRandomSampler, WeightedRandomSampler
from .worker import get_worker_info

__all__ = [
    "Dataset", "IterableDataset", "TensorDataset", "ComposeDataset", "ChainDataset", "ConcatDataset", "Subset",
    "random_split", "BatchSampler", "DistributedBatchSampler", "DataLoader", "get_worker_info", "Sampler",
    "SequenceSampler", "RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler",
]
