"""paddle.distributed.auto_parallel: tensors on a mesh of processes, and layers and optimizers made of them."""
from .api import DistAttr, dtensor_from_fn, reshard, shard_layer, shard_op, shard_optimizer, shard_tensor
from .process_mesh import ProcessMesh

__all__ = ["DistAttr", "ProcessMesh", "dtensor_from_fn", "reshard", "shard_layer", "shard_op", "shard_optimizer", "shard_tensor"]
