"""Calls with tensors on a mesh: a rule (rules.py) says how the inputs have to be placed, so that each process can run the op on its
parts, and how the results are; without a rule all inputs become Replicate."""
import functools
import inspect

from ... import _core
from .placement_type import Replicate
from .redistribute import line_of, redistribute, shared


class Call:
    """A call under way: its tensors, and its other arguments by name."""

    def __init__(self, name, function, args, keywords):
        self.name, self.function = name, function
        self.args, self.keywords = list(args), dict(keywords)
        self.tuples = []
        self.spots = list(self._find())
        self.tensors = [self._at(spot) for spot in self.spots]
        self.mesh = self._common_mesh()

    def _find(self):
        for where, key in [*((self.args, i) for i in range(len(self.args))), *((self.keywords, k) for k in self.keywords)]:
            value = where[key]
            if isinstance(value, _core.Tensor):
                yield where, key, None
            elif isinstance(value, (list, tuple)) and any(isinstance(v, _core.Tensor) for v in value):
                if isinstance(value, tuple):
                    self.tuples.append((where, key))
                where[key] = list(value)
                for i, v in enumerate(value):
                    if isinstance(v, _core.Tensor):
                        yield where, key, i

    @staticmethod
    def _at(spot):
        where, key, i = spot
        return where[key] if i is None else where[key][i]

    def _common_mesh(self):
        meshes = [t._mesh for t in self.tensors if is_dist(t)]
        other = next((m for m in meshes if m != meshes[0]), None)
        if other is not None:
            raise ValueError(f"{self.name}: tensors on two meshes, {meshes[0]!r} and {other!r}; reshard one to the other's mesh first")
        return meshes[0]

    @property
    def dims(self):
        return range(self.mesh.ndim)

    def placements(self, tensor):
        """A tensor's placements; one that is not on the mesh is equal on all processes."""
        return list(tensor._placements) if is_dist(tensor) else [Replicate()] * self.mesh.ndim

    def replicated(self):
        """Placements Replicate for every tensor, to be changed by a rule."""
        return [[Replicate()] * self.mesh.ndim for _ in self.tensors]

    def even(self, tensor):
        """Whether all pieces of a tensor are of one size."""
        return all(not p.is_shard() or tensor.shape[p.get_dim()] % self.mesh.shape[at] == 0
                   for at, p in enumerate(self.placements(tensor)))

    def index(self, tensor):
        """The number of a tensor among the call's; None if it is no tensor of it."""
        for i, t in enumerate(self.tensors):
            if t is tensor:
                return i
        return None

    @functools.cached_property
    def given(self):
        """The arguments by name, with defaults."""
        names, defaults = _parameters(self.function)
        return {**defaults, **dict(zip(names, self.args)), **self.keywords}

    def change(self, name, value):
        """Gives an argument another value."""
        given = dict(self.given)
        given[name] = value
        self.args, self.keywords, self.tuples = [], given, []
        self.spots = list(self._find())
        order = [self.index(self._at(spot)) for spot in self.spots]
        assert sorted(order) == list(range(len(self.tensors)))
        self.spots = [self.spots[order.index(i)] for i in range(len(order))]

    def run(self, targets):
        """Calls the function on this process's parts under the placements `targets`."""
        varying = [at for at in self.dims if self.mesh.shape[at] > 1 and any(not t[at].is_replicated() for t in targets)]
        for spot, tensor, target in zip(self.spots, self.tensors, targets):
            local = self.local(tensor, target)
            for at in varying:
                if target[at].is_replicated() and not local.stop_gradient:
                    local = shared(local, line_of(self.mesh, at))
            where, key, i = spot
            if i is None:
                where[key] = local
            else:
                where[key][i] = local
        return self.called()

    def called(self):
        """The function's result for the arguments as they are now."""
        for where, key in self.tuples:
            where[key] = tuple(where[key])
        return self.function(*self.args, **self.keywords)

    def local(self, tensor, target):
        """This process's part of a tensor under other placements."""
        if is_dist(tensor):
            return redistribute(tensor._local_value(), tensor.shape, self.mesh, tensor._placements, target)
        return redistribute(tensor, tensor.shape, self.mesh, [Replicate()] * self.mesh.ndim, target)


@functools.cache
def _parameters(function):
    """Names of a function's parameters, and defaults by name."""
    found = inspect.signature(function).parameters
    return tuple(found), {name: p.default for name, p in found.items() if p.default is not p.empty}


@functools.cache
def _late():
    """Modules that import this one."""
    from . import dist_tensor, rules
    return rules.rule_of, dist_tensor.DistTensor, dist_tensor.make


def is_dist(tensor):
    """Whether a tensor is on a mesh: plain ones, which the class of others answers for, are not."""
    return getattr(tensor, "_mesh", None) is not None


def dispatch(function, args, keywords):
    """A call of an op's function, from the extension."""
    if function.__name__.endswith("_") and not function.__name__.startswith("_"):
        return in_place(function, args, keywords)
    return call(function.__op__, function, args, keywords)


def call(name, function, args, keywords):
    """The function's results for tensors of which some are on a mesh."""
    made = Call(name, function, args, keywords)
    rule = _late()[0](name, function)
    plan = rule(made) if rule else None
    if made.mesh.coordinates() is None and not callable(plan):
        from .stages import shapes_alone
        return shapes_alone(made, plan and plan[1])
    if plan is None:
        targets, outs = made.replicated(), None
    elif callable(plan):
        return plan()
    else:
        targets, outs = plan
    result = made.run(targets)
    if name in _RANDOM:
        several = isinstance(result, (list, tuple))
        result = [agree(made.mesh, r) for r in result] if several else agree(made.mesh, result)
    return _wrapped(made.mesh, result, outs)


# Ops that draw random numbers, and those that write them: all processes take what the mesh's first one drew.
_RANDOM = frozenset("multinomial bernoulli poisson randint_like uniform_ normal_ gaussian_ exponential_ cauchy_ geometric_ bernoulli_".split())


def agree(mesh, tensor):
    """The tensor of a mesh's first process, on all of them."""
    if mesh.size < 2 or mesh.coordinates() is None or not isinstance(tensor, _core.Tensor):
        return tensor
    group = mesh.group(*range(mesh.ndim))
    return _core.broadcast(tensor, src=group.get_group_rank(mesh.process_ids[0]), group=group.id)


def _wrapped(mesh, result, outs):
    """Results on the mesh. outs: for each of them, or for all, (placements, global shape or None: pieces are equal), or
    rules.DROPPED."""
    _, DistTensor, make = _late()
    count = 0

    def wrap(value):
        nonlocal count
        if isinstance(value, (list, tuple)):
            return type(value)(wrap(v) for v in value)
        if not isinstance(value, _core.Tensor) or is_dist(value):
            return value
        out = (None, None) if outs is None else outs[min(count, len(outs) - 1)]
        count += 1
        if len(out) > 2:
            return None
        placements = out[0] or [Replicate()] * mesh.ndim
        shape = list(out[1] if out[1] is not None else value.shape)
        for at, p in enumerate(placements):
            if p.is_shard() and out[1] is None:
                shape[p.get_dim()] *= mesh.shape[at]
        return make(DistTensor, value, mesh, placements, shape, value.dtype)

    return wrap(result)


def in_place(function, args, keywords):
    """A call that writes its first argument."""
    target = args[0] if args else next(iter(keywords.values()))
    if not is_dist(target):
        raise ValueError(f"{function.__name__}: a tensor that is not on a mesh cannot be overwritten by one that is; shard_tensor it first")
    made = Call(function.__name__, function, args, keywords)
    if made.mesh.coordinates() is None:
        return target
    local, recording = target._local_value(), _core.set_recording(False)
    _core.set_recording(recording)
    if recording and local.is_leaf and not local.stop_gradient:
        raise ValueError(f"{function.__name__}: a leaf that wants a gradient cannot be overwritten; use it in paddle.no_grad()")
    wholes = [made.local(t, [Replicate()] * made.mesh.ndim) for t in made.tensors]
    wholes = [w.clone() if t is target and w is local else w for w, t in zip(wholes, made.tensors)]
    for (where, key, i), whole in zip(made.spots, wholes):
        if i is None:
            where[key] = whole
        else:
            where[key][i] = whole
    made.called()
    whole = wholes[made.index(target)]
    if function.__name__ in _RANDOM:
        whole = agree(made.mesh, whole)
    part = redistribute(whole, target.shape, made.mesh, [Replicate()] * made.mesh.ndim, target._placements)
    if local.stop_gradient and part.stop_gradient or not recording:
        held = _core.set_recording(False)
        try:
            local.copy_(part, True)
        finally:
            _core.set_recording(held)
    else:
        target._local = part
    return target
