"""Questions of training scripts before they set up data parallelism (paddle.distributed.parallel.parallel_helper)."""
from .group import get_world_size, is_initialized


def _is_parallel_ctx_initialized():
    """Whether init_parallel_env was called."""
    return is_initialized()


def _is_data_parallel_mode():
    """Whether the job has several processes and they are connected."""
    return is_initialized() and get_world_size() > 1
