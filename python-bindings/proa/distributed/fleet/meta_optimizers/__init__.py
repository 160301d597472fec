"""Wrappers of optimizers and of gradient scalers for hybrid parallelism, at Paddle's paths."""
from .dygraph_optimizer import DygraphShardingOptimizer, HybridParallelOptimizer
from .dygraph_optimizer.hybrid_parallel_optimizer import distributed_scaler

__all__ = ["DygraphShardingOptimizer", "HybridParallelOptimizer", "distributed_scaler"]
