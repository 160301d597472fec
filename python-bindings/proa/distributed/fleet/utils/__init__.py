"""fleet.utils: recompute (activation checkpointing), and local and HDFS file systems."""
from .fs import HDFSClient, LocalFS
from .recompute import recompute, recompute_sequential

__all__ = ["HDFSClient", "LocalFS", "recompute"]
