"""group_sharded_parallel: stage 1 shards optimizer states, stage 2 also gradients, stage 3 also parameters."""
import os

from ... import _core
from ...nn.layer.layers import Layer
from .. import communication as _c
from ..group import group_of
from ..parallel import WrappedLayer
from .clip import ModelSquares, clip_over_ranks, refuse_line_search, summed
from .layer_rates import rates_over_ranks
from .divided_parameters import DividedOptimizer, DividedParameters
from .exchange import agree_on_gradients, average, start_equal
from .whole_states import joined, only_of

LEVELS = ("os", "os_g", "p_g_os")


def deal_out(parameters, ranks):
    """The owner of each parameter: always the rank that has the least so far."""
    loads, owners = [0] * ranks, []
    for param in parameters:
        owner = loads.index(min(loads))
        loads[owner] += int(param.size)
        owners.append(owner)
    return owners


class GroupSharded(WrappedLayer):
    """A layer whose parameters start equal; gradients are averaged by the optimizer's step."""

    def __init__(self, layer, group, copies):
        super().__init__(layer, "_group_sharded")
        self._group = group
        for among in (group, *copies):
            start_equal([*layer.parameters(), *layer.buffers()], among)


class GroupShardedOptimizer:
    """Another optimizer, of which each rank holds the states of its own parameters and sends those out after a step. With
    divide_grads a gradient goes to its owner alone, and the others drop it."""

    def __init__(self, optimizer, group, copies, divide_grads):
        self._inner_opt, self._group, self._copies, self._divide_grads = optimizer, group, copies, divide_grads
        self._all = list(optimizer._parameter_list)
        if self._all and isinstance(self._all[0], dict):
            raise ValueError("group_sharded_parallel: an optimizer with parameter groups is not divided; give it one list")
        model = ModelSquares(self._all)
        self._owners = deal_out(self._all, group.nranks)
        mine = [p for p, owner in zip(self._all, self._owners) if owner == group.rank]
        optimizer._parameter_list = optimizer._param_groups = mine
        clip_over_ranks(optimizer, lambda params_grads: summed(model(params_grads), group), model)
        rates_over_ranks(optimizer, model)

    def __getattr__(self, name):
        return getattr(self._inner_opt, name)

    def _exchange(self):
        """Averages gradients: on every rank, or on their owners'."""
        agree_on_gradients(self._all, [self._group, *self._copies])
        if not self._divide_grads:
            for group in (self._group, *self._copies):
                average(self._all, group)
            return
        for param, owner in zip(self._all, self._owners):
            if param.stop_gradient or param.grad is None:
                continue
            if _core.is_rows(param.grad):
                average([param], self._group)
            else:
                _c.reduce(param.grad, self._group.ranks[owner], _c.ReduceOp.AVG, self._group)
            if owner != self._group.rank:
                param.clear_gradient(False)
        for group in self._copies:
            average([p for p, owner in zip(self._all, self._owners) if owner == self._group.rank], group)

    def step(self):
        """Averages gradients, updates this rank's parameters, and gives all ranks all parameters."""
        recording = _core.set_recording(False)
        try:
            self._exchange()
            self._inner_opt.step()
            for param, owner in zip(self._all, self._owners):
                _c.broadcast(param.detach(), self._group.ranks[owner], self._group)
        finally:
            _core.set_recording(recording)

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """A step with the gradients that loss.backward() made."""
        self.step()
        return [], [(p, p.grad) for p in self._all if p.grad is not None]

    def clear_grad(self, set_to_zero=True):
        """Clears the gradients of all parameters."""
        _core.clear_grads(self._all, set_to_zero and not self._divide_grads)

    clear_gradients = clear_grad

    def _all_parameters(self):
        """All parameters: a scaler unscales before gradients are averaged."""
        return self._all

    def whole_state_dict(self):
        """The states of all ranks, as one process has them. All ranks call it."""
        return joined(self._inner_opt.state_dict(), self._group)

    def set_state_dict(self, state_dict):
        """Takes over what it has of a state, which any number of ranks may have saved."""
        self._inner_opt.set_state_dict(only_of(state_dict, {p.name for p in self._inner_opt._parameter_list}))

    set_dict = set_state_dict


def group_sharded_parallel(model, optimizer, level, scaler=None, group=None, offload=False, sync_buffers=False,
                           buffer_max_size=2 ** 23, segment_size=2 ** 20, sync_comm=False, dp_group=None, exclude_layer=None):
    """(model, optimizer, scaler) of a training whose optimizer states ("os"), gradients ("os_g") and parameters of more than
    segment_size elements ("p_g_os") are divided among the group's processes; dp_group: the ranks that hold what this one holds.
    Layers of exclude_layer (class names or ids) keep theirs whole. offload moves optimizer states to the host's memory, where those
    of a CPU are already. Sizes of buffers and sync_comm change nothing here."""
    if level not in LEVELS:
        raise ValueError(f"group_sharded_parallel: level must be one of {LEVELS}, got {level!r}")
    if not isinstance(model, Layer):
        raise TypeError(f"group_sharded_parallel: model must be a Layer, got {type(model).__name__}")
    group = group_of(group, "group_sharded_parallel")
    copies = [] if dp_group is None or dp_group.nranks < 2 else [group_of(dp_group, "group_sharded_parallel")]
    if group.nranks < 2 and not copies:
        return model, optimizer, scaler
    _check(model, optimizer, level, {"group": group, **{"dp_group": copy for copy in copies}})
    if scaler is not None:
        scaler = scaled_together(scaler, [group, *copies, *ModelSquares(model.parameters()).groups])
    if level == "p_g_os":
        model = DividedParameters(model, group, copies, segment_size, exclude_layer, sync_buffers)
        return model, DividedOptimizer(optimizer, model), scaler
    return GroupSharded(model, group, copies), GroupShardedOptimizer(optimizer, group, copies, level == "os_g"), scaler


def _check(model, optimizer, level, groups):
    """Refuses what would average over ranks that have other weights, or twice."""
    from ..fleet.meta_optimizers import HybridParallelOptimizer
    from ..fleet.meta_parallel.pipeline_layer import PipelineLayer
    refuse_line_search("group_sharded_parallel", optimizer, f"level {level!r}")
    if isinstance(optimizer, HybridParallelOptimizer):
        raise ValueError(f"group_sharded_parallel: level {level!r} does not go with the optimizer of fleet.distributed_optimizer, which "
                         "averages gradients itself; give it the optimizer that was handed to fleet")
    if any(isinstance(layer, PipelineLayer) and layer._num_stages > 1 for layer in model.sublayers(include_self=True)):
        raise ValueError(f"group_sharded_parallel: level {level!r} does not go with a pipeline (pp_degree); use fleet's "
                         "sharding_degree, which divides optimizer states, with it")
    for divided in ModelSquares(model.parameters()).groups:
        for name, group in groups.items():
            if len(set(divided.ranks) & set(group.ranks)) > 1:
                raise ValueError(f"group_sharded_parallel: {name} holds the ranks {group.ranks}, of which several are among "
                                 f"{divided.ranks}, which tensor parallelism (mp_degree) gives different weights; give it the "
                                 "topology's get_sharding_parallel_group() or get_data_parallel_group()")


def scaled_together(scaler, groups):
    """The scaler, whose search for infinities looks at all ranks of these groups: all skip a step together."""
    unscale = scaler._unscale

    def together(optimizer):
        unscale(optimizer)
        found = getattr(scaler, "_found_inf", None)
        if found is None:
            return
        flag = _core.cast(found, "int32")
        for group in groups:
            if group.nranks > 1:
                _c.all_reduce(flag, _c.ReduceOp.MAX, group)
        scaler._found_inf = _core.cast(flag, "bool")

    scaler._unscale = together
    return scaler


def save_group_sharded_model(model, output, optimizer=None):
    """Saves model.pdmodel and model.pdopt in a folder, as one process would have them: any number of ranks, and real Paddle,
    reads them. All ranks call it; rank 0 writes."""
    from ...framework import io
    if os.path.isfile(output):
        raise ValueError(f"save_group_sharded_model: output must be a folder, {output} is a file")
    os.makedirs(output, exist_ok=True)
    state = model.state_dict()
    writes = not isinstance(model, (GroupSharded, DividedParameters)) or model._group.rank == 0
    if writes:
        io.save(state, os.path.join(output, "model.pdmodel"))
    if isinstance(model, DividedParameters):
        model.release_parameters()
    if optimizer is not None:
        state = optimizer.whole_state_dict() if hasattr(optimizer, "whole_state_dict") else optimizer.state_dict()
        if writes:
            io.save(state, os.path.join(output, "model.pdopt"))
