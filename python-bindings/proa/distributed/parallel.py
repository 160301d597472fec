"""DataParallel: a layer whose gradients are averaged over processes while backward is still running."""
import contextlib
import warnings

from .. import _core
from ..nn.layer.layers import Layer
from . import communication as _c
from . import parallel_helper
from .group import ParallelEnv, get_rank, get_world_size, group_of, init_parallel_env

__all__ = ["DataParallel", "ParallelEnv", "WrappedLayer", "get_rank", "get_world_size", "init_parallel_env",
           "parallel_helper", "sync_params_buffers"]


def _sparse_parameters(layer):
    """Ids of the tables whose gradients are rows."""
    return {id(sub.weight) for sub in layer.sublayers(include_self=True) if getattr(sub, "_sparse", False)}


def sync_params_buffers(model, comm_group=None, src_rank=0, is_model_parallel=False):
    """Gives every rank the parameters and buffers of rank src_rank, but for those marked is_distributed."""
    for tensor in [*model.parameters(), *model.buffers()]:
        if not getattr(tensor, "is_distributed", False) and tensor is not None:
            _c.broadcast(tensor.detach(), src_rank, comm_group)


class WrappedLayer(Layer):
    """A layer that runs another, whose state it has under the other's names."""

    def __init__(self, layers, suffix):
        super().__init__(layers.full_name() + suffix)
        self._layers = layers

    def forward(self, *inputs, **kwargs):
        return self._layers(*inputs, **kwargs)

    def state_dict(self, destination=None, include_sublayers=True, structured_name_prefix="",
                   use_hook=True):
        """The wrapped layer's state, under its own names."""
        return self._layers.state_dict(destination=destination, include_sublayers=include_sublayers,
                                       structured_name_prefix=structured_name_prefix, use_hook=use_hook)

    def set_state_dict(self, state_dict, use_structured_name=True):
        """Sets the wrapped layer's state."""
        return self._layers.set_state_dict(state_dict, use_structured_name=use_structured_name)

    set_dict = load_dict = set_state_dict


class DataParallel(WrappedLayer):
    """A layer whose parameters start equal on all ranks and whose gradients are averaged over them. Gradients travel
    together until they are a sixteenth of all, within last_comm_buffer_size and comm_buffer_size MB; which
    parameters a backward does not use is found out, whatever find_unused_parameters says.

    >>> import proa as paddle
    >>> layer = paddle.DataParallel(paddle.nn.Linear(2, 3))
    >>> layer(paddle.ones([1, 2])).shape
    [1, 3]
    """

    def __init__(self, layers, strategy=None, comm_buffer_size=25, last_comm_buffer_size=1,
                 find_unused_parameters=False, group=None):
        super().__init__(layers, "_data_parallel")
        self.find_unused_parameters = find_unused_parameters
        self.group = group_of(group, "DataParallel")
        self.comm_buffer_size, self.last_comm_buffer_size = comm_buffer_size, last_comm_buffer_size
        self.var_dtype = _core.Tensor
        self._reducer = None
        if self.group.nranks < 2:
            if get_world_size() < 2:
                warnings.warn("The program will return to single-card operation. Please check 1, whether you use spawn or "
                              "fleetrun to start the program. 2, Whether it is a multi-card program. 3, Is the current "
                              "environment multi-card.")
            else:
                raise RuntimeError("DataParallel: call init_parallel_env first")
            return
        sync_params_buffers(layers, self.group, self.group.ranks[0])
        self.init_reducer()

    def init_reducer(self):
        """Begins to average the gradients of the parameters that are trainable now."""
        seen, trained = set(), []
        for p in self._layers.parameters():
            left_out = p.stop_gradient or getattr(p, "no_sync", False) or getattr(p, "is_distributed", False)
            if not left_out and id(p) not in seen:
                seen.add(id(p))
                trained.append(p)
        assert trained, "This model does not have any parameters to train, and does not need to use DataParallel"
        sparse = _sparse_parameters(self._layers)
        self._reducer = _core.reducer_new(trained, self.group._handle, int(self.comm_buffer_size * (1 << 20)),
                                          int(self.last_comm_buffer_size * (1 << 20)), [int(id(p) in sparse) for p in trained])

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients only accumulate within the block; the next backward outside averages all of it."""
        if self._reducer is None:
            yield
            return
        _core.reducer_sync(self._reducer, False)
        try:
            yield
        finally:
            _core.reducer_sync(self._reducer, True)

    def scale_loss(self, loss):
        """The loss as it is: gradients are averaged, not summed."""
        return loss

    def apply_collective_grads(self):
        """Gradients are averaged in backward already."""
