"""paddle.distributed for one process: rank 0 of a world of 1."""
from .parallel import DataParallel, ParallelEnv, get_rank, get_world_size, init_parallel_env, is_initialized

__all__ = ["DataParallel", "ParallelEnv", "get_rank", "get_world_size", "init_parallel_env", "is_initialized"]
