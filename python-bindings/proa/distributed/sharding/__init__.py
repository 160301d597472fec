"""paddle.distributed.sharding: optimizer states, gradients and parameters, sharded over the processes of a group."""
from .group_sharded import group_sharded_parallel, save_group_sharded_model

__all__ = ["group_sharded_parallel", "save_group_sharded_model"]
