"""Wrapper layers that fleet.distributed_model puts around a model: for tensor and sharding parallelism, for LocalSGD and DGC, and
DataParallel."""
from .... import _core
from ... import communication as _c
from ...parallel import DataParallel, WrappedLayer, sync_params_buffers
from ...sharding.exchange import start_equal


def start_alike(layers, hcg):
    """Gives the ranks of a model their first rank's parameters and buffers but for those that are divided among them; then the
    ranks of a sharding group, and those of a data group, all of their first rank's."""
    model = hcg.get_model_parallel_group()
    if model.nranks > 1:
        sync_params_buffers(layers, model, model.ranks[0])
    for group in (hcg.get_sharding_parallel_group(), hcg.get_data_parallel_group()):
        start_equal([*layers.parameters(), *layers.buffers()], group)


class MetaParallelBase(WrappedLayer):
    """A layer that runs another on the hybrid groups."""

    def __init__(self, layers, hcg, strategy):
        super().__init__(layers, "_meta_parallel_base")
        self._hcg, self._strategy = hcg, strategy
        start_alike(layers, hcg)


def _tensors_in(value):
    """The tensors of nested lists, tuples and dicts."""
    if isinstance(value, _core.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for item in value for tensor in _tensors_in(item)]


class TensorParallel(MetaParallelBase):
    """A model of divided layers: parameters that are not divided, and every forward's inputs, are those of the model's
    first rank."""

    def forward(self, *inputs, **kwargs):
        group = self._hcg.get_model_parallel_group()
        if group.nranks > 1:
            for given in _tensors_in([inputs, kwargs]):
                _c.broadcast(given.detach(), group.ranks[0], group)
        return self._layers(*inputs, **kwargs)


class ShardingParallel(MetaParallelBase):
    """A model whose optimizer states are divided: parameters are those of the first rank."""


class LocalParallel(MetaParallelBase):
    """A model of which every rank keeps its own gradients: parameters start as those of the first rank."""


def data_parallel(model, strategy, hcg):
    """DataParallel over the data group, as the strategy says."""
    group = hcg.get_data_parallel_group() if hcg is not None else None
    return DataParallel(model, comm_buffer_size=strategy._message.get("fuse_grad_size_in_MB"),
                        last_comm_buffer_size=strategy._message.get("last_comm_group_size_MB"),
                        find_unused_parameters=strategy._message.get("find_unused_parameters"), group=group)
