"""shard_optimizer: optimizer states on the mesh."""
from ... import _core
from ..sharding.clip import ClipOverRanks, ModelSquares, clip_over_ranks, refuse_line_search, summed
from ..sharding.layer_rates import rates_over_ranks
from .dist_tensor import DistTensor, make
from .placement_type import Replicate
from .process_mesh import join
from .redistribute import local_shape, redistribute


def take_norms_of_whole(optimizer):
    """Has an optimizer's clips, and the rates of LAMB and LARS, take norms of whole parameters of which processes have parts."""
    parameters = optimizer._all_parameters()
    optimizer.__dict__.pop("_apply", None)
    for options in (optimizer._default_dict, *(g for g in optimizer._param_groups if isinstance(g, dict))):
        clip = options["grad_clip"]
        options["grad_clip"] = clip._clip if isinstance(clip, ClipOverRanks) else clip
    optimizer._grad_clip = optimizer._default_dict["grad_clip"]
    model, total = ModelSquares(parameters), _over_meshes(optimizer, parameters)
    if not model.groups and total is None:
        return
    refuse_line_search("paddle.optimizer", optimizer, "a mesh")
    clip_over_ranks(optimizer, total or model, model)
    rates_over_ranks(optimizer, model)


def _over_meshes(optimizer, parameters):
    """The sum of squares of all gradients where parameters are on several meshes, whose processes have different ones; None where all
    are on the same processes."""
    meshes = {tuple(sorted(p._mesh.process_ids)): p._mesh for p in optimizer._on_mesh}
    if len(meshes) < 2:
        return None
    everyone = join(sorted({r for ranks in meshes for r in ranks}))
    size = {p._local.name: p._mesh.size for p in optimizer._on_mesh if p._local is not None}
    model = ModelSquares(parameters)

    def total(params_grads):
        found = _core.full([1], 0.0, _core.float64)
        for n in sorted(set(size.values())):  # each of a mesh's n processes knows the sum over it
            found = found + model([(p, g) for p, g in params_grads if size.get(p.name, 1) == n]) / n
        return summed(found, everyone)
    return total


class _Slice:
    """A parameter whose optimizer states have placements of their own: the step is taken on a slice of it."""

    def __init__(self, param, placements):
        self.param, self.placements = param, placements
        self.part = type(param._local)._share(self.of(param._local).clone())
        described = {"name": param.name, "trainable": True, "optimize_attr": param.optimize_attr, "regularizer": param.regularizer,
                     "need_clip": param.need_clip}
        self.part._describe(**described)
        dims = [at for at, p in enumerate(placements) if p.is_shard() and param._mesh.shape[at] > 1]
        self.part.split_group = param._mesh.group(*dims).id if dims else None

    def of(self, local):
        """The slice of a local value."""
        p = self.param
        return redistribute(local, p.shape, p._mesh, p._placements, self.placements)

    def give(self):
        """Takes the parameter's value and gradient."""
        self.part.set_value(self.of(self.param._local))
        grad = self.param._local.grad
        self.part.grad = None if grad is None else self.of(grad)

    def take(self):
        """Gives the new value to the parameter."""
        p = self.param
        p._local.set_value(redistribute(self.part, p.shape, p._mesh, self.placements, p._placements))
        self.part.grad = None


class _ShardOptimizer:
    """An optimizer whose states are on the mesh: as the parameters are, or as shard_fn(name, param, state) puts them."""

    def __init__(self, optimizer, shard_fn=None):
        from ...optimizer import Optimizer
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"shard_optimizer: optimizer must be a paddle.optimizer.Optimizer, got {type(optimizer).__name__}")
        self._inner_opt, self._shard_fn = optimizer, shard_fn
        self._on_mesh = {p._local.name: p for p in optimizer._on_mesh if p._local is not None}
        self._slices = {}
        if shard_fn is not None:
            self._place_states()

    def _place_states(self):
        """Asks shard_fn where the states are to be; where that is not where the parameter is, steps are taken on slices."""
        opt = self._inner_opt
        for param in self._on_mesh.values():
            if param.stop_gradient:
                continue
            opt._create_accumulators(None, [param._local])
            for key, states in opt._accumulators.items():
                state = states.get(param.name)
                if state is None or state.shape != param._local.shape:
                    continue
                placed = self._shard_fn(key, param, self._wrapped(param, state))
                if not isinstance(placed, DistTensor) or placed._placements == param._placements:
                    continue
                before = self._slices.get(param.name)
                if before is not None and before.placements != placed._placements:
                    raise ValueError(f"shard_optimizer: shard_fn places the states of {param.name} in two ways, {before.placements} and "
                                     f"{placed._placements}")
                if before is None:
                    self._slices[param.name] = _Slice(param, placed._placements)
        for name, piece in self._slices.items():
            for states in opt._accumulators.values():
                state = states.get(name)
                if state is not None and state.shape == piece.param._local.shape:
                    states[name] = piece.of(state).clone()
                    states[name].name = state.name
            self._replace(piece.param._local, piece.part)
        opt._plans.clear()
        take_norms_of_whole(opt)

    def _replace(self, old, new):
        for params in (self._inner_opt._param_groups, self._inner_opt._parameter_list):
            for group in ([g["params"] for g in params] if params and isinstance(params[0], dict) else [params]):
                group[:] = [new if p is old else p for p in group]

    def _wrapped(self, param, state):
        """A state of this process as a tensor on the mesh."""
        piece = self._slices.get(param.name)
        placements = piece.placements if piece else param._placements
        shape = param.shape
        if state.shape != local_shape(shape, param._mesh, placements, param._mesh.coordinates()):
            placements, shape = [Replicate()] * param._mesh.ndim, state.shape
        made = make(DistTensor, state, param._mesh, placements, shape, state.dtype)
        made.name = state.name
        return made

    def step(self):
        """Updates the parameters that have gradients."""
        recording = _core.set_recording(False)
        try:
            for piece in self._slices.values():
                piece.give()
            self._inner_opt.step()
            for piece in self._slices.values():
                piece.take()
        finally:
            _core.set_recording(recording)

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """A step with the gradients that loss.backward() made."""
        self.step()
        return [], [(p, p.grad) for p in self._on_mesh.values() if p.grad is not None]

    def clear_grad(self, set_to_zero=True):
        """Makes the gradients of all parameters zeros, or drops them."""
        self._inner_opt.clear_grad(set_to_zero)
        for piece in self._slices.values():
            piece.param._local.clear_gradient(set_to_zero)

    clear_gradients = clear_grad

    def state_dict(self):
        """The states by name, those of parameters on the mesh as tensors on it; made here if there was no step yet."""
        opt = self._inner_opt
        opt._create_accumulators(None, [p for p in opt._all_parameters() if not p.stop_gradient])
        states = opt.state_dict()
        for by_param in opt._accumulators.values():
            for name, state in by_param.items():
                if name in self._on_mesh and state.name in states:
                    states[state.name] = self._wrapped(self._on_mesh[name], state)
        return states

    def set_state_dict(self, state_dict):
        """Takes over states, from tensors on any mesh or whole ones."""
        opt, given = self._inner_opt, dict(state_dict)
        opt._create_accumulators(None, [p for p in opt._all_parameters() if not p.stop_gradient])
        for by_param in opt._accumulators.values():
            for name, state in by_param.items():
                value = given.get(state.name)
                if value is not None and name in self._on_mesh:
                    self._wrapped(self._on_mesh[name], state).set_value(value)
                    given[state.name] = state
        opt.set_state_dict({k: v._whole() if isinstance(v, DistTensor) else v for k, v in given.items()})

    def __getattr__(self, name):
        return getattr(self._inner_opt, name)


def shard_optimizer(optimizer, shard_fn=None):
    """The optimizer with its states on the mesh: as the parameters are, or as shard_fn(name, param, state) returns them, such as divided
    where the parameter is Replicate.

    >>> import proa as paddle
    >>> import proa.distributed as dist
    >>> net = dist.shard_layer(paddle.nn.Linear(2, 3), dist.ProcessMesh([0]))
    >>> opt = dist.shard_optimizer(paddle.optimizer.AdamW(parameters=net.parameters()))
    >>> sum(state.is_dist() for state in opt.state_dict().values())
    8
    """
    return _ShardOptimizer(optimizer, shard_fn)
