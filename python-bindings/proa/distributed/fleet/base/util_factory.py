"""fleet.util: collectives on NumPy arrays, and each rank's share of a list of files."""
import numpy as np

from .... import _core
from ... import communication as _c
from ...group import get_rank, get_world_size, join_workers, world


class UtilBase:
    """Collectives and shards of file lists for scripts, beside training."""

    def __init__(self):
        self.role_maker = None

    def _set_role_maker(self, role_maker):
        self.role_maker = role_maker

    def _set_strategy(self, dist_strategy):
        self.dist_strategy = dist_strategy

    def _world_of(self, comm_world):
        if comm_world not in ("worker", "server", "all"):
            raise ValueError(f"fleet.util: comm_world must be worker, server or all, got {comm_world!r}")
        if self.role_maker is not None and not self.role_maker._is_collective:
            if comm_world != "worker" and self.role_maker._get_pserver_endpoints():
                raise NotImplementedError(f"fleet.util: comm_world {comm_world!r}: servers take no part in collectives; take 'worker'")
            join_workers(self.role_maker)

    def all_reduce(self, input, mode="sum", comm_world="worker"):
        """The array summed (or largest, smallest) over the processes."""
        self._world_of(comm_world)
        if mode not in ("sum", "max", "min"):
            raise ValueError(f"fleet.util.all_reduce: mode must be sum, max or min, got {mode!r}")
        array = np.asarray(input)
        if get_world_size() < 2:
            return array
        tensor = _core.to_tensor(np.ascontiguousarray(array))
        _c.all_reduce(tensor, {"sum": _c.ReduceOp.SUM, "max": _c.ReduceOp.MAX, "min": _c.ReduceOp.MIN}[mode])
        return tensor.numpy().reshape(array.shape)

    def all_gather(self, input, comm_world="worker"):
        """The inputs of all processes, in the order of ranks."""
        self._world_of(comm_world)
        from ...objects import all_gather_object
        if get_world_size() < 2:
            return [input]
        gathered = []
        all_gather_object(gathered, input)
        return gathered

    def barrier(self, comm_world="worker"):
        """Waits for all processes."""
        self._world_of(comm_world)
        if get_world_size() > 1:
            _c.barrier(world())

    def get_file_shard(self, files):
        """This process's part of a list of files: the first ranks have one more where it does not divide."""
        if not isinstance(files, list):
            raise TypeError(f"files should be a list of file need to be read, got {type(files).__name__}")
        maker = self.role_maker
        rank = maker._worker_index() if maker is not None else get_rank()
        size = maker._worker_num() if maker is not None else get_world_size()
        each, more = divmod(len(files), size)
        begin = rank * each + min(rank, more)
        return files[begin:begin + each + (rank < more)]

    def print_on_rank(self, message, rank_id):
        """Prints on one rank."""
        if get_rank() == rank_id:
            print(message)
