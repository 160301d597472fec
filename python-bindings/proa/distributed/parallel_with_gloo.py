"""Jobs of processes that say rank, size and meeting place themselves."""
import warnings

from .. import _core
from . import group as _group
from .communication import barrier


def gloo_init_parallel_env(rank_id, rank_num, server_endpoint):
    """Joins a job of rank_num processes as rank_id; they meet at server_endpoint, "ip:port", an address of rank 0's host."""
    if not isinstance(rank_num, int) or rank_num < 2:
        raise ValueError(f"gloo_init_parallel_env: rank_num must be an int of at least 2, got {rank_num!r}")
    if not isinstance(rank_id, int) or not 0 <= rank_id < rank_num:
        raise ValueError(f"gloo_init_parallel_env: rank_id must be an int in [0, {rank_num}), got {rank_id!r}")
    host, _, port = str(server_endpoint).rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"gloo_init_parallel_env: server_endpoint must be 'ip:port', got {server_endpoint!r}")
    if _group.is_initialized():
        if _core.dist_place() == (rank_id, rank_num):
            return
        raise RuntimeError(f"gloo_init_parallel_env: this process is rank {_core.dist_place()[0]} of {_core.dist_place()[1]} already; call "
                           "gloo_release() or destroy_process_group() first")
    _group.join_at(server_endpoint, rank_id, rank_num)


def gloo_barrier():
    """Waits until every process of the job is here."""
    if not _group.is_initialized():
        raise RuntimeError("gloo_barrier: call gloo_init_parallel_env first")
    barrier()


def gloo_release():
    """Leaves the job; another may be joined afterwards."""
    if not _group.is_initialized():
        warnings.warn("gloo_release: this process is in no job")
        return
    _group.destroy_process_group()


__all__ = ["gloo_barrier", "gloo_init_parallel_env", "gloo_release"]
