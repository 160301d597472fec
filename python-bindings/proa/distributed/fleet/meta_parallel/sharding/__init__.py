"""Buffers that hold all parameters, or all gradients, of a model; group_sharded_parallel itself is in paddle.distributed.sharding."""
