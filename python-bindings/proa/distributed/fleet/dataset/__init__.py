"""Data sets of fleet, and the trees of tree-based retrieval."""
from ...dataset import InMemoryDataset, QueueDataset
from .index_dataset import TreeIndex

__all__ = ["InMemoryDataset", "QueueDataset", "TreeIndex"]
