"""fluid.dataset: QueueDataset, InMemoryDataset and their factory, data sets read from text files
(distributed/dataset.py)."""
from ..distributed import InMemoryDataset as _InMemory, QueueDataset as _Queue
from .data_feed_desc import FeedMessage

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

    def set_fea_eval(self, record_candidate_size, fea_eval=True):
        """Kept: slots_shuffle moves the values of all samples."""
        self.fea_eval = bool(fea_eval)

    def desc(self):
        """The description of its feed in protobuf's text format."""
        from ..framework.dtype import dtype_name
        message = FeedMessage("DataFeedDesc")
        message.update({"name": self._feed_name, "batch_size": self._batch_size, "pipe_command": self._pipe_command}, "desc")
        for var in self._use_var or ():
            slot = {"name": var.name, "type": "float" if dtype_name(var.dtype) == "float32" else "uint64", "is_used": True}
            if not var.lod_level:
                slot.update(is_dense=True, shape=list(var.declared_shape))
            message.get("multi_slot_desc").add("slots", slot)
        return message.to_text()


class QueueDataset(_Setters, _Queue):
    """Streams its files."""

    _feed_name = "MultiSlotDataFeed"

    def local_shuffle(self):
        raise NotImplementedError("QueueDataset does not support local shuffle, please use InMemoryDataset for local_shuffle")

    def global_shuffle(self, fleet=None):
        raise NotImplementedError("QueueDataset does not support global shuffle, please use InMemoryDataset for global_shuffle")

    def slots_shuffle(self, slots):
        raise NotImplementedError("QueueDataset does not support slots shuffle, please use InMemoryDataset for slots_shuffle")


class InMemoryDataset(_Setters, _InMemory):
    """Holds its samples, and shuffles them."""

    _feed_name = "MultiSlotInMemoryDataFeed"

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
