"""Tensor-parallel layers, under the paths of Paddle 2.4 and later."""
from ...meta_parallel import (ColumnParallelLinear, ParallelCrossEntropy, RNGStatesTracker, RowParallelLinear,
                              VocabParallelEmbedding, get_rng_state_tracker, model_parallel_random_seed)

__all__ = ["ColumnParallelLinear", "ParallelCrossEntropy", "RNGStatesTracker", "RowParallelLinear", "VocabParallelEmbedding",
           "get_rng_state_tracker", "model_parallel_random_seed"]
