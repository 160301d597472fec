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

# Modules that are imported when one of their names is asked for.
_LATER = {
    "auto_parallel.api": ("DistAttr", "dtensor_from_fn", "reshard", "shard_layer", "shard_op", "shard_optimizer", "shard_tensor"),
    "auto_parallel.dist_model": ("DistModel", "to_static"),
    "auto_parallel.placement_type": ("Partial", "Placement", "ReduceType", "Replicate", "Shard"),
    "auto_parallel.process_mesh": ("ProcessMesh",),
    "auto_parallel.strategy": ("Strategy",),
    "checkpoint.load_state_dict": ("load_state_dict",),
    "checkpoint.save_state_dict": ("save_state_dict",),
    "fleet.base.topology": ("ParallelMode",),
    "parallel_with_gloo": ("gloo_barrier", "gloo_init_parallel_env", "gloo_release"),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}
_MODULES = ("auto_parallel", "checkpoint", "collective", "fleet", "io", "passes", "rpc", "sharding")

__all__ = ["CountFilterEntry", "DataParallel", "DistAttr", "Group", "InMemoryDataset", "P2POp", "ParallelEnv", "ParallelMode",
           "Partial", "Placement", "ProbabilityEntry", "ProcessMesh", "QueueDataset", "ReduceOp", "ReduceType", "Replicate", "Shard",
           "ShowClickEntry", "Strategy", "all_gather", "all_gather_object", "all_reduce", "alltoall", "alltoall_single", "barrier",
           "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group", "dtensor_from_fn", "gather",
           "get_backend", "get_group", "get_rank", "get_world_size", "gloo_barrier", "gloo_init_parallel_env", "gloo_release",
           "init_parallel_env", "io", "irecv", "is_available", "is_initialized", "isend", "launch", "load_state_dict", "new_group",
           "recv", "reduce", "reduce_scatter", "reshard", "save_state_dict", "scatter", "scatter_object_list", "send", "shard_layer",
           "shard_optimizer", "shard_tensor", "spawn", "split", "stream", "to_static", "wait"]


def __getattr__(name):
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(f"module 'paddle.distributed' has no attribute {name!r}")
    import importlib
    found = importlib.import_module(f".{_HOME.get(name, name)}", __name__)
    if name in _HOME:
        found = globals()[name] = getattr(found, name)
    return found


def __dir__():
    return sorted({*globals(), *_HOME, *_MODULES})
