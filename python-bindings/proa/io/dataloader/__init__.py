"""paddle.io.dataloader: where Paddle 2.6 keeps the parts of paddle.io."""
from ..batch_sampler import BatchSampler, DistributedBatchSampler
from ..dataset import (ChainDataset, ComposeDataset, ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset,
                       random_split)
from ..sampler import RandomSampler, Sampler, SequenceSampler, SubsetRandomSampler, WeightedRandomSampler

__all__ = ["BatchSampler", "ChainDataset", "ComposeDataset", "ConcatDataset", "Dataset", "DistributedBatchSampler",
           "IterableDataset", "RandomSampler", "Sampler", "SequenceSampler", "Subset", "SubsetRandomSampler", "TensorDataset",
           "WeightedRandomSampler", "random_split"]
