"""Point-to-point communication of neighboring pipeline stages (the last is a neighbor of the first); shape and dtype
precede each tensor. Activations and gradients use separate groups, so that neither waits for the other."""
import numpy as np

from .... import _core
from ... import communication as _c
from ...group import new_group

_DTYPES = [_core.float32, _core.float64, _core.float16, _core.bfloat16, _core.int64, _core.int32, _core.bool, _core.uint8, _core.int8]
_HEAD = 12  # dtype, whether a gradient comes back, number of dims, dims


class Neighbors:
    """The stages before and after this one. All processes make it together."""

    def __init__(self, hcg):
        mine = []
        for _ in range(2):  # forward, backward
            for ranks in hcg.topology().get_comm_list("pipe"):
                group = new_group(ranks)
                if hcg.global_rank in ranks:
                    mine.append(group)
        self._forward, self._backward = mine
        stage, ranks = hcg.get_stage_id(), self._forward.ranks
        self._stages = ranks
        self._before, self._after = ranks[stage - 1], ranks[(stage + 1) % len(ranks)]
        self._under_way = []

    def _send(self, tensors, rank, group):
        count = _core.to_tensor(np.array([len(tensors)], "int64"))
        self._queue(_c.isend(count, rank, group), count)
        for tensor in tensors:
            head = np.zeros(_HEAD, "int64")
            head[:3] = _DTYPES.index(tensor.dtype), not tensor.stop_gradient, tensor.ndim
            head[3:3 + tensor.ndim] = tensor.shape
            told = _core.to_tensor(head)
            self._queue(_c.isend(told, rank, group), told)
            data = tensor.detach()
            self._queue(_c.isend(data, rank, group), data)

    def _queue(self, task, tensor):
        """Keeps a message under way, with its memory; drops those that are done."""
        self._under_way = [(t, kept) for t, kept in self._under_way if not t.is_completed()]
        self._under_way.append((task, tensor))

    def _recv(self, rank, group):
        count = _core.to_tensor(np.zeros(1, "int64"))
        _c.recv(count, rank, group)
        tensors = []
        for _ in range(int(count)):
            told = _core.to_tensor(np.zeros(_HEAD, "int64"))
            _c.recv(told, rank, group)
            dtype, wants, ndim, *dims = told.numpy().tolist()
            tensor = _core.full(dims[:ndim], 0, _DTYPES[dtype])
            _c.recv(tensor, rank, group)
            tensor.stop_gradient = not wants
            tensors.append(tensor)
        return tensors

    def send_forward(self, tensors):
        """To the stage after."""
        self._send(tensors, self._after, self._forward)

    def recv_forward(self):
        """From the stage before."""
        return self._recv(self._before, self._forward)

    def send_backward(self, tensors):
        """To the stage before."""
        self._send(tensors, self._before, self._backward)

    def recv_backward(self):
        """From the stage after."""
        return self._recv(self._after, self._backward)

    def send_to(self, stage, tensors):
        """To any stage, which calls recv_from."""
        self._send(tensors, self._stages[stage], self._forward)

    def recv_from(self, stage):
        """From any stage."""
        return self._recv(self._stages[stage], self._forward)

    def finish(self):
        """Waits until all that was sent has gone."""
        for task, _ in self._under_way:
            task.wait()
        self._under_way = []
