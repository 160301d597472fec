"""fluid.dataset: data sets that are read from files."""
from ..distributed import InMemoryDataset as _InMemory, QueueDataset as _Queue

__all__ = ["DatasetFactory", "InMemoryDataset", "QueueDataset"]


class _Setters:
    """Settings one by one, as programs of 1.x give them."""

    def _change(self, **settings):
        self._set(self._checked(settings, "set_" + next(iter(settings))))

    def set_batch_size(self, batch_size):
        self._change(batch_size=batch_size)

    def set_use_var(self, var_list):
        """The variables, in the order of a line."""
        self._change(use_var=list(var_list))

    def set_pipe_command(self, pipe_command):
        """A shell command that each file is piped through."""
        self._change(pipe_command=pipe_command)

    def set_thread(self, thread_num):
        """Kept: batches run one after the other."""
        self._change(thread_num=thread_num)

    def set_hdfs_config(self, fs_name, fs_ugi):
        """ValueError unless both are empty: files come from this machine."""
        self._change(fs_name=fs_name, fs_ugi=fs_ugi)


class QueueDataset(_Setters, _Queue):
    """Streams its files."""

    def local_shuffle(self):
        raise NotImplementedError("QueueDataset does not support local shuffle, please use InMemoryDataset for local_shuffle")

    def global_shuffle(self, fleet=None):
        raise NotImplementedError("QueueDataset does not support global shuffle, please use InMemoryDataset for global_shuffle")


class InMemoryDataset(_Setters, _InMemory):
    """Holds its samples, and shuffles them."""

    def set_queue_num(self, queue_num):
        """No effect: samples are in one list."""

    def set_fleet_send_batch_size(self, fleet_send_batch_size=1024):
        """No effect: one process has all samples."""


class DatasetFactory:
    """Makes data sets by name."""

    def create_dataset(self, datafeed_class="QueueDataset"):
        """An InMemoryDataset or a QueueDataset."""
        kinds = {"InMemoryDataset": InMemoryDataset, "QueueDataset": QueueDataset}
        if datafeed_class not in kinds:
            raise ValueError(f"datafeed class {datafeed_class} does not exist")
        return kinds[datafeed_class]()
