"""Wrappers of optimizer and gradient scaler for hybrid parallelism: they average gradients over data-parallel
ranks, clip by norms over model-parallel ranks, and divide states over the sharding group."""
from ..... import _core
from .... import communication as _c
from ....sharding.clip import ModelSquares, agree_on_clips, clip_over_ranks, refuse_line_search, summed
from ....sharding.exchange import agree_on_gradients, average
from ....sharding.group_sharded import deal_out, scaled_together
from ....sharding.layer_rates import rates_over_ranks
from ....sharding.whole_states import joined, only_of


def _total_over(hcg, model):
    """The sum of squares over all of a model's ranks: what is replicated or shared counts once."""

    def total(params_grads):
        whole = model([(p, g) for p, g in params_grads if getattr(p, "is_firstly_shared", True)])  # else another stage counts it
        return summed(summed(whole, hcg.get_pipe_parallel_group()), hcg.get_sharding_parallel_group())

    return total


class HybridParallelOptimizer:
    """Another optimizer's steps on the hybrid groups."""

    def __init__(self, optimizer, hcg, strategy):
        self._inner_opt, self._hcg, self._strategy = optimizer, hcg, strategy
        self._owner = None
        if hcg.get_check_parallel_group().nranks > 1:
            model = ModelSquares(optimizer._all_parameters())
            if model.groups:
                refuse_line_search("distributed_optimizer", optimizer, "tensor parallelism (mp_degree)")
            clip_over_ranks(optimizer, _total_over(hcg, model), model)
            rates_over_ranks(optimizer, model)
        if hcg.get_pipe_parallel_group().nranks > 1:
            agree_on_clips(optimizer, hcg.get_pipe_parallel_group())
        if hcg.get_sharding_parallel_world_size() > 1:
            self._deal_out()

    def __getattr__(self, name):
        return getattr(self._inner_opt, name)

    def _deal_out(self):
        """Gives each parameter to the rank of the sharding group that has the least so far; this one keeps its own."""
        self._all = list(self._inner_opt._parameter_list)
        if self._all and isinstance(self._all[0], dict):
            raise ValueError("distributed_optimizer: sharding does not go with parameter groups")
        self._owner = dict(zip(map(id, self._all), deal_out(self._all, self._hcg.get_sharding_parallel_world_size())))
        rank = self._hcg.get_sharding_parallel_rank()
        mine = [p for p in self._all if self._owner[id(p)] == rank]
        self._inner_opt._parameter_list = self._inner_opt._param_groups = mine

    def _parameters(self):
        return self._all if self._owner is not None else self._inner_opt._all_parameters()

    _all_parameters = _parameters  # a scaler unscales before gradients are averaged

    def whole_state_dict(self):
        """The states of all ranks of the sharding group, as one of them would have them. All ranks call it."""
        return joined(self._inner_opt.state_dict(), self._hcg.get_sharding_parallel_group())

    def set_state_dict(self, state_dict):
        """Takes over what this rank has of a state, which any number of ranks may have saved."""
        if self._owner is not None:
            state_dict = only_of(state_dict, {p.name for p in self._inner_opt._parameter_list})
        self._inner_opt.set_state_dict(state_dict)

    def _before_step(self):
        recording = _core.set_recording(False)
        try:
            groups = self._hcg.get_sharding_parallel_group(), self._hcg.get_data_parallel_group()
            if self._needs_average():
                agree_on_gradients(self._parameters(), groups)
                for group in groups:
                    average(self._parameters(), group)
        finally:
            _core.set_recording(recording)

    def _needs_average(self):
        """DataParallel has averaged already where only data are divided."""
        from ...base.topology import ParallelMode
        return self._hcg.get_parallel_mode() != ParallelMode.DATA_PARALLEL

    def step(self):
        """Averages gradients, clips, updates; with sharding each rank updates its own parameters and sends them out."""
        self._before_step()
        self._inner_opt.step()
        if self._owner is not None:
            group = self._hcg.get_sharding_parallel_group()
            for param in self._all:
                _c.broadcast(param.detach(), group.ranks[self._owner[id(param)]], group)

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """A step with the gradients that loss.backward() made."""
        self.step()
        return [], [(p, p.grad) for p in self._parameters() if p.grad is not None]

    def clear_grad(self, set_to_zero=True):
        """Clears the gradients of all parameters, the others' as well."""
        _core.clear_grads([p for p in self._parameters()], set_to_zero)

    clear_gradients = clear_grad


def distributed_scaler(scaler, hcg):
    """The scaler, whose search for infinities looks at all ranks: all skip a step together."""
    return scaled_together(scaler, [hcg.get_check_parallel_group(), hcg.get_data_parallel_group()])
