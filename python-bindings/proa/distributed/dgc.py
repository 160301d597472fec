"""Deep gradient compression (Lin, Han, Mao, Wang, Dally 2018, arXiv 1712.01887): each rank sends the largest entries of its
accumulated gradients, and keeps the others for later steps."""
import numpy as np

from .. import _core
from ..framework import mode
from ..nn import ClipGradByNorm
from ..optimizer import Momentum
from .group import world
from .sharding.exchange import agree_on_gradients

_SMALLEST = 16384  # elements: Paddle's bound; smaller parameters are averaged whole


class DGCMomentum(Momentum):
    """Momentum on the averages of all ranks' gradients, which are sent compressed. The model must not average them.

    Up to step rampup_begin_step it is Momentum on whole gradients. From then on a rank's gradient g is accumulated with momentum
    correction (u = momentum · u + g, v = v + u); the 1 − sparsity largest entries of |v| in each parameter are sent and cleared in u
    and v, and parameter −= learning_rate · (their average over the ranks). `sparsity` is a list, whose values follow one another over
    rampup_step steps. A grad_clip, which must be ClipGradByNorm, clips each rank's share g / ranks to clip_norm / √ranks.
    Only float32 parameters of at least 16384 elements are compressed."""

    def __init__(self, learning_rate=0.001, momentum=0.9, rampup_begin_step=0, rampup_step=1, sparsity=None, parameters=None,
                 use_nesterov=False, weight_decay=None, grad_clip=None, name=None):
        if grad_clip is not None and not isinstance(grad_clip, ClipGradByNorm):
            raise TypeError(f"DGCMomentum: grad_clip must be ClipGradByNorm, as a rank sees no other's gradients, got "
                            f"{type(grad_clip).__name__}")
        super().__init__(learning_rate, momentum, parameters, use_nesterov, weight_decay, grad_clip, name=name)
        if self._param_groups is not self._parameter_list:
            raise ValueError("DGCMomentum: parameters must be a list of Tensors, got groups; make one optimizer a group")
        self._begin, self._rampup, self._sparsity = int(rampup_begin_step), int(rampup_step), [float(s) for s in sparsity or [0.999]]
        if self._begin < 0 or self._rampup < 1 or not all(0 <= s < 1 for s in self._sparsity):
            raise ValueError(f"DGCMomentum: expected rampup_begin_step >= 0, rampup_step >= 1 and each sparsity in [0, 1), got "
                             f"{rampup_begin_step}, {rampup_step}, {self._sparsity}")
        self._count = 0

    # ---- the stages of training: whole gradients (−1), then the sparsities in turn ----

    def _stage(self):
        if self._count < self._begin:
            return -1
        return min((self._count - self._begin) * len(self._sparsity) // self._rampup, len(self._sparsity) - 1)

    def _first_steps(self):
        """(stage, first step) of every stage that has steps."""
        last, stages = len(self._sparsity) - 1, [(-1, 0)] if self._begin else []
        for at in range(last + 1):
            first = -(-at * self._rampup // len(self._sparsity))
            following = -(-(at + 1) * self._rampup // len(self._sparsity))
            if at == last or first < following:
                stages.append((at, self._begin + first))
        return stages

    # ---- state ----

    def state_dict(self):
        """Momentum's, and the number of steps."""
        return {**super().state_dict(), "dgc_step": self._count}

    def set_state_dict(self, state_dict):
        """Takes over what state_dict() gave."""
        state = dict(state_dict)
        self._count = int(state.pop("dgc_step", self._count))
        super().set_state_dict(state)

    # ---- the step ----

    def _step(self):
        recording = _core.set_recording(False)
        try:
            agree_on_gradients(self._all_parameters(), [world()])
        finally:
            _core.set_recording(recording)
        super()._step()

    def _update(self, index, params, grads, options):
        grads = [_core.rows_to_dense(g) if _core.is_rows(g) else g for g in grads]
        large = [int(np.prod(p.shape)) >= _SMALLEST and p.dtype == g.dtype == _core.float32 for p, g in zip(params, grads)]
        small = [at for at, is_large in enumerate(large) if not is_large]
        if small:
            whole = averaged([grads[at] for at in small])
            super()._update(index, [params[at] for at in small], whole, options)
        large = [at for at, is_large in enumerate(large) if is_large]
        if large:
            self._update_large([params[at] for at in large], [grads[at] for at in large])
        if not mode.building():
            self._count += 1

    def _update_large(self, params, grads):
        names = ["_dgc_u_", "_dgc_v_"] + (["velocity"] if self._begin else [])
        states = [[self._add_accumulator(name, p) for name in names] for p in params]
        rates = [self._create_param_lr((p, g)) for p, g in zip(params, grads)]

        def values(stage):
            """The parameters and states after a step of this stage."""
            given = [self._decayed(p, g if stage < 0 else self._clipped(g)) for p, g in zip(params, grads)]
            step = self._whole_step if stage < 0 else self._sparse_step
            return step(stage, params, given, states, rates)

        if mode.building():
            made = self._chosen(values)
        else:
            made = values(self._stage())
        for target, value in zip([t for p, held in zip(params, states) for t in (p, *held)], made):
            _core.assign_to(value, target)

    def _chosen(self, values):
        """The values of the stage that a program's counter of steps has reached; counts."""
        from ..static.nn import cond
        from ..static.variable import make_persistable
        stages = self._first_steps()
        if len(stages) == 1:
            return values(stages[0][0])
        counter = make_persistable("@DGC_COUNTER@", [1], _core.int64, 0)
        now = _core.scale(counter, 1.0, 0.0)

        def among(stages):
            if len(stages) == 1:
                return values(stages[0][0])
            half = len(stages) // 2
            begun = _core.less_than(now, _core.full([1], stages[half][1], _core.int64))
            return cond(begun, lambda: among(stages[:half]), lambda: among(stages[half:]))

        made = among(stages)
        _core.assign_to(_core.scale(now, 1.0, 1.0), counter)
        return made

    def _clipped(self, grad):
        """A gradient whose share of the average is clipped."""
        clip, ranks = self._grad_clip, world().nranks
        if clip is None:
            return grad
        return _core.clip_by_norm(grad, float(clip.clip_norm) * ranks ** 0.5)

    def _decayed(self, param, grad):
        grad, decay = self._create_regularization_of_grad(param, grad, self.regularization), self._extra(param)
        return _core.add(grad, _core.scale(param, float(decay))) if decay else grad

    def _whole_step(self, stage, params, grads, states, rates):
        """Momentum on averages of whole gradients."""
        made = []
        for param, grad, (u, v, velocity), rate in zip(params, averaged(grads), states, rates):
            velocity = _core.add(_core.scale(velocity, float(self._momentum)), grad)
            move = _core.add(grad, _core.scale(velocity, float(self._momentum))) if self._use_nesterov else velocity
            made += [_core.subtract(param, _core.multiply(move, rate)), u, v, velocity]
        return made

    def _sparse_step(self, stage, params, grads, states, rates):
        """Descent along averages of the entries that are sent."""
        made, sent, momentum = [], [], float(self._momentum)
        for param, grad, (u, v, *velocity), rate in zip(params, grads, states, rates):
            if self._use_nesterov:
                u = _core.scale(_core.add(u, grad), momentum)
                v = _core.add(_core.add(v, u), grad)
            else:
                u = _core.add(_core.scale(u, momentum), grad)
                v = _core.add(v, u)
            count = kept_entries(int(np.prod(param.shape)), self._sparsity[stage])
            flat = v.reshape([-1])
            _, at = _core.topk(_core.abs(flat), count)
            values, nothing = _core.gather(flat, at), _core.full([count], 0.0, _core.float32)
            sent.append((values, _core.cast(at, _core.int32)))
            made.append([param, *(_core.scatter(t.reshape([-1]), at, nothing).reshape(param.shape) for t in (u, v)), *velocity])
        for values, rate, average in zip(made, rates, self._gathered(params, sent)):
            values[0] = _core.subtract(values[0], _core.multiply(average, rate))
        return [value for values in made for value in values]

    @staticmethod
    def _gathered(params, sent):
        """Averages over the ranks of gradients of which each sent entries: all parameters' in one message, and their indices."""
        values, indices = (_joined_over_ranks([pair[i] for pair in sent]) for i in range(2))
        begin, found = 0, []
        for param, (own, _) in zip(params, sent):
            count = int(np.prod(own.shape))
            mine, at = (t[:, begin:begin + count].reshape([-1]) for t in (values, indices))
            whole = _core.full([int(np.prod(param.shape))], 0.0, _core.float32)
            summed = _core.scatter_nd_add(whole, at.reshape([-1, 1]), mine)
            found.append(_core.scale(summed, 1.0 / world().nranks).reshape(param.shape))
            begin += count
        return found


def kept_entries(size, sparsity):
    """The number of a parameter's entries that are sent; counted in float32, as Paddle does."""
    return max(1, int(np.float32(size) * (np.float32(1) - np.float32(sparsity))))


def _joined_over_ranks(parts):
    """The ranks' parts, a row a rank."""
    ranks, joined = world().nranks, _core.concat(parts) if len(parts) > 1 else parts[0]
    return _core.all_gather(joined, group=world().id, nranks=ranks).reshape([ranks, -1])


def averaged(grads):
    """Averages over all ranks, in one message a dtype."""
    ranks, found = world().nranks, list(grads)
    for dtype in dict.fromkeys(g.dtype for g in grads):  # in one order on all ranks
        at = [i for i, g in enumerate(grads) if g.dtype == dtype]
        joined = _core.concat([grads[i].reshape([-1]) for i in at])
        joined = _core.scale(_core.all_reduce(joined, op="SUM", group=world().id), 1.0 / ranks)
        parts = _core.split(joined, [int(np.prod(grads[i].shape)) for i in at], 0)
        for i, part in zip(at, parts):
            found[i] = part.reshape(grads[i].shape)
    return found
