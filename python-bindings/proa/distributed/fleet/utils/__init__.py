"""fleet.utils: recompute, file systems."""
from .fs import HDFSClient, LocalFS
from .recompute import recompute, recompute_sequential

__all__ = ["HDFSClient", "LocalFS", "recompute"]
