"""paddle.distributed.collective: groups and collectives under the path of Paddle 2.0 to 2.4."""
from .communication import (ReduceOp, all_gather, all_reduce, alltoall, barrier, broadcast, recv, reduce, reduce_scatter, scatter,
                            send, wait)
from .fleet.layers.mpu.mp_ops import (_c_concat, _c_identity, _c_lookup_table, _c_softmax_with_cross_entropy,  # noqa: F401
                                      _c_split, _mp_allreduce)
from .group import Group, get_group, is_initialized, new_group, world
from .partition import split


def _get_default_group():
    """The whole job's group."""
    return world()


_get_global_group = _get_default_group

__all__ = ["Group", "ReduceOp", "all_gather", "all_reduce", "alltoall", "barrier", "broadcast", "get_group", "is_initialized",
           "new_group", "recv", "reduce", "reduce_scatter", "scatter", "send", "split", "wait"]
