"""paddle.distributed for one process: rank 0 of a world of 1."""
from .dataset import InMemoryDataset, QueueDataset
from .parallel import DataParallel, ParallelEnv, get_rank, get_world_size, init_parallel_env, is_initialized

__all__ = ["DataParallel", "InMemoryDataset", "ParallelEnv", "QueueDataset", "get_rank", "get_world_size",
           "init_parallel_env", "is_initialized"]
