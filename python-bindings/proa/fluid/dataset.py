"""fluid.dataset: data sets that are read from files."""
from ..distributed import InMemoryDataset as _InMemory, QueueDataset as _Queue

__all__ = ["DatasetFactory", "InMemoryDataset", "QueueDataset"]

InMemoryDataset, QueueDataset = _InMemory, _Queue


class DatasetFactory:
    """Makes data sets by name."""

    def create_dataset(self, datafeed_class="QueueDataset"):
        """An InMemoryDataset or a QueueDataset."""
        kinds = {"InMemoryDataset": InMemoryDataset, "QueueDataset": QueueDataset}
        if datafeed_class not in kinds:
            raise ValueError(f"datafeed class {datafeed_class} does not exist")
        return kinds[datafeed_class]()
