"""group_sharded_parallel: stage 1 divides optimizer states, stage 2 gradients as well."""
import os

from ... import _core
from ...nn.clip import ClipGradByGlobalNorm
from ...nn.layer.layers import Layer
from .. import communication as _c
from ..group import group_of
from ..parallel import WrappedLayer, sync_params_buffers

LEVELS = ("os", "os_g", "p_g_os")


def deal_out(parameters, ranks):
    """The owner of each parameter: always the rank that has the least so far."""
    loads, owners = [0] * ranks, []
    for param in parameters:
        owner = loads.index(min(loads))
        loads[owner] += int(param.size)
        owners.append(owner)
    return owners


def squares(grads):
    """The sum of squares of gradients of any floating dtypes: float32[1]."""
    total = _core.full([1], 0.0, _core.float32)
    for dtype in {g.dtype for g in grads}:
        same = _core.global_squared_norm([g for g in grads if g.dtype == dtype])
        total = total + _core.cast(same, _core.float32).reshape([1])
    return total


class ClipOverRanks:
    """ClipGradByGlobalNorm whose norm is over several ranks: total_of(params_grads) gives the sum of squares."""

    def __init__(self, clip, total_of):
        self._clip, self._total_of = clip, total_of

    def __getattr__(self, name):
        return getattr(self._clip, name)

    def __call__(self, params_grads):
        clipped = [(p, g) for p, g in params_grads if g is not None and getattr(p, "need_clip", True)]
        norm = _core.sqrt(self._total_of(clipped))
        limit = _core.full_like(norm, self._clip.clip_norm)
        factor = _core.divide(limit, _core.maximum(norm, limit))
        scaled = {id(p): _core.multiply(g, _core.cast(factor, g.dtype)) for p, g in clipped}
        return [(p, scaled.get(id(p), g)) for p, g in params_grads]


class GroupSharded(WrappedLayer):
    """A layer whose parameters start equal; gradients are averaged by the optimizer's step."""

    def __init__(self, layer, group):
        super().__init__(layer, "_group_sharded")
        self._group = group
        sync_params_buffers(layer, group, group.ranks[0])


class GroupShardedOptimizer:
    """Another optimizer, of which each rank holds the states of its own parameters and sends those out after a step. With
    divide_grads a gradient goes to its owner alone, and the others drop it."""

    def __init__(self, optimizer, group, divide_grads):
        self._inner_opt, self._group, self._divide_grads = optimizer, group, divide_grads
        self._all = list(optimizer._parameter_list)
        if self._all and isinstance(self._all[0], dict):
            raise ValueError("group_sharded_parallel: an optimizer with parameter groups is not divided; give it one list")
        self._owners = deal_out(self._all, group.nranks)
        mine = [p for p, owner in zip(self._all, self._owners) if owner == group.rank]
        optimizer._parameter_list = optimizer._param_groups = mine
        if isinstance(optimizer._grad_clip, ClipGradByGlobalNorm):
            optimizer._grad_clip = ClipOverRanks(optimizer._grad_clip, self._total)

    def __getattr__(self, name):
        return getattr(self._inner_opt, name)

    def _total(self, params_grads):
        total = squares([g for _, g in params_grads])
        _c.all_reduce(total, group=self._group)
        return total

    def _exchange(self):
        """Averages gradients: on every rank, or on their owners'."""
        for param, owner in zip(self._all, self._owners):
            if param.stop_gradient:
                continue
            if param.grad is None:  # some other rank may have one
                param.grad = _core.full_like(param, 0.0)
            if self._divide_grads:
                _c.reduce(param.grad, self._group.ranks[owner], _c.ReduceOp.AVG, self._group)
                if owner != self._group.rank:
                    param.clear_gradient(False)
            else:
                _c.all_reduce(param.grad, _c.ReduceOp.AVG, self._group)

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

    def clear_grad(self, set_to_zero=True):
        """Clears the gradients of all parameters."""
        _core.clear_grads(self._all, set_to_zero and not self._divide_grads)

    clear_gradients = clear_grad


def group_sharded_parallel(model, optimizer, level, scaler=None, group=None, offload=False, sync_buffers=False,
                           buffer_max_size=2 ** 23, segment_size=2 ** 20, sync_comm=False, dp_group=None, exclude_layer=None):
    """(model, optimizer, scaler) of a training whose optimizer states ("os"), and gradients ("os_g"), are divided among the
    group's processes. Dividing parameters ("p_g_os") and offload are not there."""
    if level not in LEVELS:
        raise ValueError(f"group_sharded_parallel: level must be one of {LEVELS}, got {level!r}")
    if level == "p_g_os" or offload:
        raise NotImplementedError("group_sharded_parallel: parameters stay whole and on their device; use level 'os' or 'os_g', "
                                  "offload=False")
    if not isinstance(model, Layer):
        raise TypeError(f"group_sharded_parallel: model must be a Layer, got {type(model).__name__}")
    group = group_of(group, "group_sharded_parallel")
    if group.nranks < 2:
        return model, optimizer, scaler
    return GroupSharded(model, group), GroupShardedOptimizer(optimizer, group, level == "os_g"), scaler


def save_group_sharded_model(model, output, optimizer=None):
    """Saves model.pdmodel, and this rank's model.pdopt, in a folder."""
    from ...framework import io
    os.makedirs(output, exist_ok=True)
    layers = model._layers if isinstance(model, GroupSharded) else model
    rank = model._group.rank if isinstance(model, GroupSharded) else 0
    if rank == 0:
        io.save(layers.state_dict(), os.path.join(output, "model.pdmodel"))
    if optimizer is not None:
        io.save(optimizer.state_dict(), os.path.join(output, "model.pdopt" if rank == 0 else f"model.pdopt.{rank}"))
