"""fluid.dygraph.parallel: DataParallel and ParallelEnv under their 2.0 names, and prepare_context."""
from ...distributed import DataParallel, ParallelEnv

__all__ = ["DataParallel", "Env", "ParallelEnv", "prepare_context"]

Env = ParallelEnv


def prepare_context(strategy=None):
    """Starts the process's group."""
    from ...distributed import init_parallel_env
    init_parallel_env()
    return strategy
