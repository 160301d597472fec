"""Gradient clipping by norms of gradients that are divided among ranks."""
from ... import _core
from ...framework.selected_rows import on_merged_rows
from ...nn.clip import ClipGradByGlobalNorm, ClipGradByNorm
from .. import communication as _c
from ..group import get_group
from ..objects import all_gather_object


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


def summed_over(value, groups):
    """The sum of a tensor over the ranks among which groups of these numbers, one inside the other, divide a parameter."""
    for id in groups:
        value = summed(value, get_group(id))
    return value


def split_groups(param):
    """The numbers of the groups among whose ranks a parameter is divided: tensor parallelism's, then that of level "p_g_os", of
    whose slices it is one. Empty: each rank has the whole."""
    from ..fleet.fleet import fleet
    found, shard = getattr(param, "split_group", None), getattr(param, "shard_group", None)
    if found is None and getattr(param, "is_distributed", False) and fleet._hcg is not None:  # a user's own layer
        group = fleet._hcg.get_model_parallel_group()
        found = group.id if group.nranks > 1 else None
    return tuple(id for id in (found, shard) if id is not None)


class ModelSquares:
    """Sums of squares over the ranks that parameters are divided among; a parameter that each of them has whole counts once. All
    parameters of this process say which groups those are, so that a rank without gradients joins in."""

    def __init__(self, parameters):
        divisions = {split_groups(p) for p in parameters} - {()}
        self.divisions = sorted(divisions, key=lambda groups: (len(groups), groups))  # every rank sums in one order
        self.groups = [get_group(id) for id in sorted({id for groups in divisions for id in groups})]

    def __call__(self, params_grads):
        """Of (parameter, gradient) pairs."""
        total = squares([g for p, g in params_grads if not split_groups(p)])
        for groups in self.divisions:
            total = total + summed_over(squares([g for p, g in params_grads if split_groups(p) == groups]), groups)
        return total

    def of_each(self, params_grads):
        """The sum of squares of each gradient, of parts over all ranks that have one."""
        each = [squares([g]) for _, g in params_grads]
        for groups in self.divisions:
            at = [i for i, (p, _) in enumerate(params_grads) if split_groups(p) == groups]
            if at:
                joined = summed_over(_core.concat([each[i] for i in at]), groups)
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
    """ClipGradByNorm of gradients of which each rank has a part: total_of is a ModelSquares."""

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


def refuse_line_search(who, optimizer, switch):
    """Refuses LBFGS with parameters that a switch divides: its search takes products of whole ones."""
    if any(cls.__name__ == "LBFGS" for cls in type(optimizer).__mro__):
        raise NotImplementedError(f"{who}: LBFGS searches along all parameters, of which {switch} gives each rank a part; use another "
                                  "optimizer")


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


def agree_on_clips(optimizer, stages):
    """Refuses an optimizer whose groups of parameters take another number of norms over all ranks than those of the other stages,
    which would wait for it."""
    clips, found = [options["grad_clip"] if options else optimizer._grad_clip for _, options in optimizer._groups()], []
    own = sum(type(clip) is ClipOverRanks for clip in clips)
    all_gather_object(found, own, stages)
    if set(found) != {own}:
        raise ValueError(f"distributed_optimizer: ClipGradByGlobalNorm takes a norm for each group of parameters: {own} here, {found} on the "
                         "stages (pp_degree); give every stage's optimizer the same groups, also those that are empty there")
