"""Stage 3 of group_sharded_parallel: every rank keeps a slice of each large parameter, of its gradient and of its optimizer
states. An op that reads a parameter gathers it; the end of its layer's forward, and its gradient in backward, free it."""
from ... import _core
from ...framework.parameter import Parameter
from .. import communication as _c
from ..parallel import WrappedLayer
from .clip import ModelSquares, clip_over_ranks
from .exchange import agree_on_gradients, average, start_equal
from .layer_rates import rates_over_ranks
from .whole_states import owner_of


class _Divided:
    """A parameter that is divided, with this rank's slice as a parameter of its own under the same name."""

    def __init__(self, param, group):
        self.param, self.shape, self.size = param, param.shape, int(param.size)
        self.group = group
        self.shard, piece = _core.shard_new(param, group._handle)
        self.slice = Parameter._share(piece)
        self.slice._describe(**{**param.__dict__, "name": param.name, "trainable": param.trainable})
        self.slice._whole, self.slice.shard_group = param, group.id if group.nranks > 1 else None

    def whole(self, piece):
        """The whole of a tensor of which every rank gives the part that goes with its slice. All ranks call it."""
        n = int(piece.size)
        out = _core.full([n * self.group.nranks], 0.0, piece.dtype)
        _c.all_gather(out, piece, self.group)
        return out[:self.size].reshape(self.shape)

    def cut(self, whole):
        """The part of a whole tensor, or array, that goes with this rank's slice."""
        n = int(self.slice.size)
        flat = _core.to_tensor(whole).reshape([-1])
        missing = n * self.group.nranks - self.size
        if missing:
            flat = _core.concat([flat, _core.full([missing], 0.0, flat.dtype)])
        return _core.assign(flat[self.group.rank * n:(self.group.rank + 1) * n])


def _excluded(layer, exclude_layer):
    """Ids of the parameters of layers that exclude_layer names by class or id."""
    chosen = set(exclude_layer or ())
    return {id(p) for sub in layer.sublayers(include_self=True) if type(sub).__name__ in chosen or id(sub) in chosen
            for p in sub.parameters()}


class DividedParameters(WrappedLayer):
    """A layer whose parameters of more than segment_size elements are divided; the others stay whole."""

    def __init__(self, layer, group, copies, segment_size, exclude_layer, sync_buffers):
        super().__init__(layer, "_group_sharded_stage3")
        self._group, self._copies, self._sync_buffers, self._divided = group, copies, sync_buffers, {}
        for among in (group, *copies):
            start_equal([*layer.parameters(), *layer.buffers()], among)
        whole = _excluded(layer, exclude_layer)
        for param in layer.parameters():
            if id(param) not in self._divided and id(param) not in whole and int(param.size) >= max(segment_size + 1, group.nranks):
                self._divided[id(param)] = _Divided(param, group)
        for sub in layer.sublayers(include_self=True):
            own = [self._divided[id(p)].shard for p in sub._parameters.values() if id(p) in self._divided]
            if own:
                sub.register_forward_post_hook(_releasing(own))

    def forward(self, *inputs, **kwargs):
        self.release_parameters()  # of a forward or a backward that ended early
        if self._sync_buffers:
            for buffer in self._layers.buffers():
                _c.broadcast(buffer.detach(), self._group.ranks[0], self._group)
        out = self._layers(*inputs, **kwargs)
        self.release_parameters()
        return out

    def release_parameters(self):
        """Frees the wholes of all divided parameters."""
        for divided in self._divided.values():
            _core.shard_release(divided.shard)

    def get_all_parameters(self, convert2cpu=False):
        """The parameters, whole until the next forward or step. All ranks call it."""
        for divided in self._divided.values():
            _core.assign(divided.param)
        return self._layers.parameters()

    def state_dict(self, *args, **kwargs):
        """The wrapped layer's state with whole parameters. All ranks call it."""
        self.get_all_parameters()
        return super().state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict, use_structured_name=True):
        """Sets the wrapped layer's state from whole parameters, the same on all ranks."""
        result = super().set_state_dict(state_dict, use_structured_name=use_structured_name)
        self.release_parameters()
        return result

    set_dict = load_dict = set_state_dict


def _releasing(shards):
    def release(layer, inputs, outputs):
        for shard in shards:
            _core.shard_release(shard)
    return release


class DividedOptimizer:
    """Another optimizer on the slices of divided parameters."""

    def __init__(self, optimizer, layer):
        if optimizer._accumulators:
            raise ValueError("group_sharded_parallel: the optimizer has made steps already; divide it before the first one")
        self._inner_opt, self._layer, self._group = optimizer, layer, layer._group
        self._by_name = {divided.param.name: divided for divided in layer._divided.values()}
        self._whole = []
        if optimizer._param_groups and isinstance(optimizer._param_groups[0], dict):
            for options in optimizer._param_groups:
                options["params"] = self._slices(options["params"])
        else:
            optimizer._parameter_list = optimizer._param_groups = self._slices(optimizer._param_groups)
        model = ModelSquares(optimizer._all_parameters())
        clip_over_ranks(optimizer, model, model)
        rates_over_ranks(optimizer, model)
        if optimizer._accumulators_holder:
            optimizer._accumulators_holder = self._cut(optimizer._accumulators_holder)
        masters = optimizer._master_weights
        optimizer._master_weights = self._cut_masters(masters) if masters else masters

    def __getattr__(self, name):
        return getattr(self._inner_opt, name)

    def _slices(self, params):
        """The parameters, with slices in place of those that are divided."""
        found = []
        for param in params:
            divided = self._layer._divided.get(id(param))
            if divided is None:
                self._whole.append(param)
            found.append(param if divided is None else divided.slice)
        return found

    def step(self):
        """Averages the gradients of whole parameters, and updates those and the slices."""
        recording = _core.set_recording(False)
        try:
            groups = [self._group, *self._layer._copies]
            agree_on_gradients(self._whole, groups)
            for group in groups:
                average(self._whole, group)
            slices = [divided.slice for divided in self._by_name.values()]
            agree_on_gradients(slices, self._layer._copies)
            for group in self._layer._copies:
                average(slices, group)
            self._layer.release_parameters()
            self._inner_opt.step()
            for divided in self._layer._divided.values():
                _core.shard_update(divided.shard)
        finally:
            _core.set_recording(recording)

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """A step with the gradients that loss.backward() made."""
        self.step()
        return [], [(p, p.grad) for p in self._inner_opt._all_parameters() if p.grad is not None]

    def clear_grad(self, set_to_zero=False):
        """Drops the gradients."""
        _core.clear_grads(self._inner_opt._all_parameters(), set_to_zero)

    clear_gradients = clear_grad

    # ---- states ----

    def _cut(self, state):
        """A state of whole parameters as one of slices; what is of slices stays."""
        found = {}
        for key, value in state.items():
            name = owner_of(key, self._by_name)
            divided = self._by_name.get(name)
            whole = divided is not None and list(value.shape) == divided.shape
            found[key] = divided.cut(value) if whole else value
        return found

    def _cut_masters(self, masters):
        found = {}
        for name, value in masters.items():
            divided = self._by_name.get(name)
            found[name] = divided.cut(value) if divided is not None and list(value.shape) == divided.shape else _core.to_tensor(value)
            found[name].name = getattr(value, "name", None) or f"{name}_fp32_master_0"
        return found

    def whole_state_dict(self):
        """The states of whole parameters, as one process has them. All ranks call it."""
        state = dict(self._inner_opt.state_dict())
        masters, found = state.pop("master_weights", {}), {}
        for key, value in state.items():
            divided = self._by_name.get(owner_of(key, self._by_name)) if isinstance(value, _core.Tensor) else None
            found[key] = divided.whole(value) if divided is not None and value.shape == divided.slice.shape else value
            if isinstance(value, _core.Tensor):
                found[key].name = key
        if masters:
            found["master_weights"] = {name: self._by_name[name].whole(value) if name in self._by_name else value
                                       for name, value in masters.items()}
        return found

    def set_state_dict(self, state_dict):
        """Takes over a state of slices, or of whole parameters from any number of ranks."""
        state = dict(state_dict)
        masters, schedule = state.pop("master_weights", None), state.pop("LR_Scheduler", None)
        state = self._cut(state)
        if masters is not None:
            state["master_weights"] = self._cut_masters(masters)
        if schedule is not None:
            state["LR_Scheduler"] = schedule
        self._inner_opt.set_state_dict(state)

    set_dict = set_state_dict

