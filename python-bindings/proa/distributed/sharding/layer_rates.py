"""Steps of LAMB and LARS, whose rate in each parameter depends on norms of the whole of it, where tensor parallelism or level
"p_g_os" gives each rank a part."""
import math

from ... import _core
from ...amp.auto_cast import suspended
from .clip import split_groups, squares, summed_over


class _Lars:
    """As lars_momentum in ops/composed/steps.c has it; the gradient's norm is the second one."""

    def __init__(self, optimizer, param, grad, states):
        self.optimizer, self.param, self.measured, (self.velocity,) = optimizer, param, grad, states
        self.attributes = optimizer._attributes(param)

    def update(self, rate, own, other):
        """own, other: the norms of the parameter and of what was measured."""
        given = self.attributes
        decay = given["lars_weight_decay"][0]
        if decay > 0 and own > 0 and other > 0:
            rate *= given["lars_coeff"] * own / (other + decay * own + given["epsilon"])
        direction = _core.add(self.measured, _core.scale(self.param, decay))
        _core.assign_to(_core.add(_core.scale(self.velocity, given["mu"]), _core.scale(direction, rate)), self.velocity)
        _core.assign_to(_core.subtract(self.param, self.velocity), self.param)


def _lamb(optimizer, groups, batch, grads, rate):
    """lamb_step sums the norms itself."""
    states = [batch.states[i] for i in optimizer._kind.order]
    optimizer._kind.op(batch.params, grads, rate, *states, batch.masters, optimizer._skip, *optimizer._numbers(batch), list(groups))


def _lars(optimizer, groups, batch, grads, rate):
    if optimizer._skip is None or not bool(optimizer._skip):
        with suspended():
            _lars_of_parts(optimizer, groups, batch, grads, float(rate))


_STEPS = {"Lamb": _lamb, "LarsMomentumOptimizer": _lars}


def _part(batch, grads, at):
    """A batch of some of its parameters, and their gradients."""
    part = type(batch)(batch.rate, batch.extra, batch.dtype)
    part.at, part.params = [batch.at[i] for i in at], [batch.params[i] for i in at]
    part.masters = [batch.masters[i] for i in at] if batch.masters else []
    part.states = [[slot[i] for i in at] for slot in batch.states]
    return part, [grads[i] for i in at]


def rates_over_ranks(optimizer, model):
    """Makes the norms in an optimizer's steps be over the ranks that have parts of a parameter; model is a ModelSquares."""
    step = next((_STEPS[cls.__name__] for cls in type(optimizer).__mro__ if cls.__name__ in _STEPS), None)
    if step is None or not model.groups:
        return
    whole = optimizer._apply

    def apply(batch, grads, rate):
        divided = [split_groups(p) for p in batch.params]
        alike = [i for i, groups in enumerate(divided) if not groups]
        if alike:
            whole(*_part(batch, grads, alike), rate)
        for groups in model.divisions:
            at = [i for i, of in enumerate(divided) if of == groups]
            if at:
                step(optimizer, groups, *_part(batch, grads, at), rate)

    optimizer._apply = apply


def _lars_of_parts(optimizer, groups, batch, grads, rate):
    owners, steps = batch.masters or batch.params, []
    for i, (owner, grad) in enumerate(zip(owners, grads)):
        grad = _core.rows_to_dense(grad) if _core.is_rows(grad) else grad
        grad = grad if grad.dtype == owner.dtype else _core.cast(grad, owner.dtype)
        steps.append(_Lars(optimizer, owner, grad, [slot[i] for slot in batch.states]))
    totals = _core.concat([squares([t]) for one in steps for t in (one.param, one.measured)])
    norms = [math.sqrt(total) for total in summed_over(totals, groups).numpy().tolist()]
    for one, own, other in zip(steps, norms[::2], norms[1::2]):
        one.update(rate, own, other)
    for param, master in zip(batch.params, batch.masters):
        _core.assign_to(_core.cast(master, param.dtype), param)
