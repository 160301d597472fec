"""Wrappers of optimizers for hybrid parallelism, at Paddle's paths."""
from .dygraph_optimizer import DygraphShardingOptimizer, HybridParallelOptimizer

__all__ = ["DygraphShardingOptimizer", "HybridParallelOptimizer"]
