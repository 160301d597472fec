"""Models spread over processes: what distributed_model makes of a layer."""
from ....nn.layer.layers import Layer
from ... import communication as _c
from ...parallel import DataParallel, sync_params_buffers


class MetaParallelBase(Layer):
    """A layer that runs another on the hybrid groups."""

    def __init__(self, layers, hcg, strategy):
        super().__init__(layers.full_name() + "_meta_parallel_base")
        self._layers, self._hcg, self._strategy = layers, hcg, strategy
        self._prepare_for_model()

    def _prepare_for_model(self):
        """For subclasses: makes parameters that are shared equal."""

    def _pre_forward(self, *inputs, **kwargs):
        """For subclasses: makes inputs that are shared equal."""

    def forward(self, *inputs, **kwargs):
        self._pre_forward(*inputs, **kwargs)
        return self._layers(*inputs, **kwargs)

    def state_dict(self, *args, **kwargs):
        """The wrapped layer's state, under its own names."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict, use_structured_name=True):
        """Sets the wrapped layer's state."""
        return self._layers.set_state_dict(state_dict, use_structured_name=use_structured_name)

    set_dict = load_dict = set_state_dict


class TensorParallel(MetaParallelBase):
    """A model of divided layers: parameters that are not divided, and every forward's inputs, are those of the model's
    first rank."""

    def _prepare_for_model(self):
        for group in (self._hcg.get_model_parallel_group(), self._hcg.get_sharding_parallel_group()):
            if group.nranks > 1:
                sync_params_buffers(self._layers, group, group.ranks[0])
        data = self._hcg.get_data_parallel_group()
        if data.nranks > 1:
            for tensor in [*self._layers.parameters(), *self._layers.buffers()]:
                _c.broadcast(tensor.detach(), data.ranks[0], data)

    def _pre_forward(self, *inputs, **kwargs):
        from .... import _core
        group = self._hcg.get_model_parallel_group()
        if group.nranks > 1:
            for given in [*inputs, *kwargs.values()]:
                if isinstance(given, _core.Tensor):
                    _c.broadcast(given.detach(), group.ranks[0], group)


class ShardingParallel(MetaParallelBase):
    """A model whose optimizer states are divided: parameters are those of the first rank."""

    def _prepare_for_model(self):
        for group in (self._hcg.get_sharding_parallel_group(), self._hcg.get_data_parallel_group()):
            if group.nranks > 1:
                sync_params_buffers(self._layers, group, group.ranks[0])


def data_parallel(model, strategy, hcg):
    """DataParallel over the data group, as the strategy says."""
    group = hcg.get_data_parallel_group() if hcg is not None else None
    return DataParallel(model, comm_buffer_size=strategy._message.get("fuse_grad_size_in_MB"),
                        last_comm_buffer_size=strategy._message.get("last_comm_group_size_MB"),
                        find_unused_parameters=strategy._message.get("find_unused_parameters"), group=group)
