"""paddle.distributed: process groups, collectives, data parallelism, and the launcher."""
from . import launch
from .communication import (P2POp, ReduceOp, all_gather, all_reduce, alltoall, alltoall_single, barrier,
                            batch_isend_irecv, broadcast, gather, irecv, isend, recv, reduce, reduce_scatter, scatter,
                            send, wait)
from .communication import stream
from .dataset import InMemoryDataset, QueueDataset
from .entry import CountFilterEntry, ProbabilityEntry, ShowClickEntry
from .group import (Group, ParallelEnv, destroy_process_group, get_backend, get_group, get_rank, get_world_size,
                    init_parallel_env, is_available, is_initialized, new_group)
from .objects import all_gather_object, broadcast_object_list, scatter_object_list
from .parallel import DataParallel
from .partition import split
from .spawn import spawn

__all__ = ["CountFilterEntry", "DataParallel", "Group", "InMemoryDataset", "P2POp", "ParallelEnv", "ProbabilityEntry",
           "QueueDataset", "ReduceOp", "ShowClickEntry", "all_gather",
           "all_gather_object", "all_reduce", "alltoall", "alltoall_single", "barrier", "batch_isend_irecv", "broadcast",
           "broadcast_object_list", "destroy_process_group", "gather", "get_backend", "get_group", "get_rank",
           "get_world_size", "init_parallel_env", "irecv", "is_available", "is_initialized", "isend", "launch", "new_group",
           "recv", "reduce", "reduce_scatter", "scatter", "scatter_object_list", "send", "spawn",
           "split", "stream", "wait"]


def __getattr__(name):
    if name not in ("collective", "fleet", "sharding"):
        raise AttributeError(f"module 'paddle.distributed' has no attribute {name!r}")
    import importlib
    return importlib.import_module(f".{name}", __name__)
