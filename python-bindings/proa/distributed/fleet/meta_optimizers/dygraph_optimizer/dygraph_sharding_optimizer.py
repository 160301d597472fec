"""Sharding's first stage as a wrapper of its own: the states of an optimizer divided over the sharding group."""
from .hybrid_parallel_optimizer import HybridParallelOptimizer


class DygraphShardingOptimizer(HybridParallelOptimizer):
    """The wrapper that fleet.distributed_optimizer makes, for groups given by hand: hcg is fleet's
    get_hybrid_communicate_group()."""

    def __init__(self, optimizer, hcg):
        super().__init__(optimizer, hcg, None)
