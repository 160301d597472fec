"""fleet.utils: recompute (activation checkpointing), local and HDFS file systems, and inference with servers' tables."""
from .fs import HDFSClient, LocalFS
from .ps_util import DistributedInfer
from .recompute import recompute, recompute_sequential

__all__ = ["DistributedInfer", "HDFSClient", "LocalFS", "recompute"]
