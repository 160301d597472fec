"""Gradient clipping by norms of gradients that are divided among ranks."""
from ... import _core
from ...framework.selected_rows import on_merged_rows
from ...nn.clip import ClipGradByGlobalNorm, ClipGradByNorm
from .. import communication as _c
from ..group import get_group

NORMS = ("Lamb", "LarsMomentumOptimizer", "LBFGS")  # optimizers whose steps need norms of whole parameters


def needs_norms(optimizer):
    """The name of the class among NORMS that an optimizer is of, or None."""
    return next((cls.__name__ for cls in type(optimizer).__mro__ if cls.__name__ in NORMS), None)


def squares(grads):
    """The sum of squares of gradients of any floating dtypes: float64[1], whatever a rank has."""
    total = _core.full([1], 0.0, _core.float64)
    grads = [_core.rows_values(_core.rows_merge(g)) if _core.is_rows(g) else g for g in grads]
    for dtype in {g.dtype for g in grads}:
        same = _core.global_squared_norm([g for g in grads if g.dtype == dtype])
        total = total + _core.cast(same, _core.float64).reshape([1])
    return total


def summed(value, group):
    """The sum of a tensor over a group."""
    if group.nranks > 1:
        _c.all_reduce(value, group=group)
    return value


def split_group(param):
    """The number of the group among which tensor parallelism divides a parameter; None: each rank has the whole."""
    from ..fleet.fleet import fleet
    found = getattr(param, "split_group", None)
    if found is None and getattr(param, "is_distributed", False) and fleet._hcg is not None:  # a user's own layer
        group = fleet._hcg.get_model_parallel_group()
        return group.id if group.nranks > 1 else None
    return found


class ModelSquares:
    """Sums of squares over the ranks that tensor parallelism divides parameters among; a parameter that each of them has whole
    counts once. All parameters of this process say which groups those are, so that a rank without gradients joins in."""

    def __init__(self, parameters):
        self.groups = [get_group(id) for id in sorted({split_group(p) for p in parameters} - {None})]

    def __call__(self, params_grads):
        """Of (parameter, gradient) pairs."""
        total = squares([g for p, g in params_grads if split_group(p) is None])
        for group in self.groups:
            own = squares([g for p, g in params_grads if split_group(p) == group.id])
            total = total + summed(own, group)
        return total

    def of_each(self, params_grads):
        """The sum of squares of each gradient, of parts over all ranks that have one."""
        each = [squares([g]) for _, g in params_grads]
        for group in self.groups:
            at = [i for i, (p, _) in enumerate(params_grads) if split_group(p) == group.id]
            if at:
                joined = summed(_core.concat([each[i] for i in at]), group)
                for n, i in enumerate(at):
                    each[i] = joined[n:n + 1]
        return each


class ClipOverRanks:
    """ClipGradByGlobalNorm whose norm is over several ranks: total_of(params_grads) gives the sum of squares. Collective:
    optimizers call it on ranks that have no gradients, too."""

    over_ranks = True

    def __init__(self, clip, total_of):
        self._clip, self._total_of = clip, total_of

    def __getattr__(self, name):
        return getattr(self._clip, name)

    def __call__(self, params_grads):
        wanted = [(p, g) for p, g in params_grads if g is not None and getattr(p, "need_clip", True)]
        norm = _core.sqrt(self._total_of(wanted))
        return _scaled(params_grads, [(p, g, norm) for p, g in wanted], self._clip.clip_norm)


class ClipEachOverRanks(ClipOverRanks):
    """ClipGradByNorm of gradients of which tensor parallelism gives each rank a part: total_of is a ModelSquares."""

    def __call__(self, params_grads):
        wanted = [(p, g) for p, g in params_grads if g is not None and getattr(p, "need_clip", True)]
        norms = [_core.sqrt(total) for total in self._total_of.of_each(wanted)]
        return _scaled(params_grads, [(p, g, norm) for (p, g), norm in zip(wanted, norms)], self._clip.clip_norm)


def _scaled(params_grads, wanted, most):
    """The pairs, with those of (parameter, gradient, norm) scaled down to a norm of most."""
    done = {}
    for param, grad, norm in wanted:
        limit = _core.full_like(norm, most)
        factor = _core.cast(_core.divide(limit, _core.maximum(norm, limit)), grad.dtype)
        done[id(param)] = on_merged_rows(lambda values, by=factor: _core.multiply(values, by), grad)
    return [(p, done.get(id(p), g)) for p, g in params_grads if g is not None]


def refuse_line_search(who, optimizer, model, switch):
    """Refuses LBFGS with parameters that tensor parallelism divides: its search takes products of whole ones."""
    if model.groups and needs_norms(optimizer) == "LBFGS":
        raise NotImplementedError(f"{who}: LBFGS searches along whole parameters, of which tensor parallelism ({switch}) gives each rank a "
                                  "part; use another optimizer, or no tensor parallelism")


def clip_over_ranks(optimizer, total_of, model):
    """Makes the clips by norm of an optimizer, and of its parameter groups, be over several ranks: total_of gives the sum of
    squares of all gradients, model (a ModelSquares) those of parts."""

    def wrapped(clip):
        if isinstance(clip, ClipGradByGlobalNorm):
            return ClipOverRanks(clip, total_of)
        return ClipEachOverRanks(clip, model) if isinstance(clip, ClipGradByNorm) and model.groups else clip

    optimizer._grad_clip = optimizer._default_dict["grad_clip"] = wrapped(optimizer._grad_clip)
    for group in optimizer._param_groups:
        if isinstance(group, dict):
            group["grad_clip"] = wrapped(group["grad_clip"])
