"""The environment of a process group of one, and DataParallel, which then is the layer itself. A larger world
(PADDLE_TRAINERS_NUM) is refused where work would have to be shared."""
import contextlib
import os

from ..nn.layer.layers import Layer

_started = []


class ParallelEnv:
    """What the launcher told this process through its environment."""

    def __init__(self):
        self._rank = int(os.getenv("PADDLE_TRAINER_ID", "0"))
        self._world_size = int(os.getenv("PADDLE_TRAINERS_NUM", "1"))
        self._device_type = str(os.getenv("PADDLE_XCCL_BACKEND", ""))
        self._device_id = int((os.getenv("FLAGS_selected_gpus") or "0").split(",")[0])
        self._trainer_endpoints = (os.getenv("PADDLE_TRAINER_ENDPOINTS") or "").split(",")
        self._current_endpoint = os.getenv("PADDLE_CURRENT_ENDPOINT", "")
        self._nrings = int(os.getenv("FLAGS_nccl_nrings", "1"))

    rank = local_rank = property(lambda self: self._rank)
    world_size = nranks = property(lambda self: self._world_size)
    device_id = dev_id = property(lambda self: self._device_id)
    device_type = property(lambda self: self._device_type)
    current_endpoint = property(lambda self: self._current_endpoint)
    trainer_endpoints = property(lambda self: self._trainer_endpoints)
    nrings = property(lambda self: self._nrings)


def get_rank(group=None):
    """This process's number in the group."""
    return ParallelEnv().rank


def get_world_size(group=None):
    """The number of processes of the group."""
    return ParallelEnv().world_size


def _only_one(who):
    if ParallelEnv().world_size > 1:
        raise RuntimeError(f"{who}: PADDLE_TRAINERS_NUM is {ParallelEnv().world_size}; the Python package runs "
                           "in one process, more of them are to come")


def init_parallel_env():
    """Makes the group of one process."""
    _only_one("init_parallel_env")
    _started.append(True)


def is_initialized():
    """Whether init_parallel_env was called."""
    return bool(_started)


class DataParallel(Layer):
    """A layer whose gradients are averaged over the processes: with one process, the layer's own."""

    def __init__(self, layers, strategy=None, comm_buffer_size=25, last_comm_buffer_size=1,
                 find_unused_parameters=False, group=None):
        super().__init__(layers.full_name() + "_data_parallel")
        _only_one("DataParallel")
        self._layers = layers
        self.find_unused_parameters = find_unused_parameters

    def forward(self, *inputs, **kwargs):
        return self._layers(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients stay this process's own within the block."""
        yield

    def scale_loss(self, loss):
        """The loss as it is: gradients are averaged, not summed."""
        return loss

    def apply_collective_grads(self):
        """Gradients are averaged in backward already."""

    def state_dict(self, destination=None, include_sublayers=True, structured_name_prefix="",
                   use_hook=True):
        """The wrapped layer's state, under its own names."""
        return self._layers.state_dict(destination=destination, include_sublayers=include_sublayers,
                                       structured_name_prefix=structured_name_prefix, use_hook=use_hook)

    def set_state_dict(self, state_dict, use_structured_name=True):
        """Sets the wrapped layer's state."""
        return self._layers.set_state_dict(state_dict, use_structured_name=use_structured_name)

    set_dict = load_dict = set_state_dict
