"""Layers and models that are divided among processes."""
from .parallel_layers import ColumnParallelLinear, ParallelCrossEntropy, RowParallelLinear, VocabParallelEmbedding
from .random import RNGStatesTracker, get_rng_state_tracker, model_parallel_random_seed
from .wrappers import MetaParallelBase, ShardingParallel, TensorParallel

__all__ = ["ColumnParallelLinear", "ParallelCrossEntropy", "RNGStatesTracker", "RowParallelLinear", "ShardingParallel",
           "TensorParallel", "VocabParallelEmbedding", "get_rng_state_tracker", "model_parallel_random_seed"]
