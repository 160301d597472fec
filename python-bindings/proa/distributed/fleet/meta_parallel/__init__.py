"""Tensor-parallel layers, pipeline models, and wrappers of models."""
from .parallel_layers import ColumnParallelLinear, ParallelCrossEntropy, RowParallelLinear, VocabParallelEmbedding
from .pipeline_layer import LayerDesc, PipelineLayer, SharedLayerDesc
from .pipeline_parallel import PipelineParallel
from .random import RNGStatesTracker, get_rng_state_tracker, model_parallel_random_seed
from .wrappers import MetaParallelBase, ShardingParallel, TensorParallel

__all__ = ["ColumnParallelLinear", "LayerDesc", "ParallelCrossEntropy", "PipelineLayer", "PipelineParallel", "RNGStatesTracker", "RowParallelLinear", "ShardingParallel", "SharedLayerDesc",
           "TensorParallel", "VocabParallelEmbedding", "get_rng_state_tracker", "model_parallel_random_seed"]
