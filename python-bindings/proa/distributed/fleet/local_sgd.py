"""LocalSGD (Stich 2019, arXiv 1805.09767) and its adaptive form (Wang, Joshi 2019, arXiv 1810.08313): ranks step on their own
gradients, and every k steps average their parameters instead."""
import math

from ... import _core
from ...framework import mode, unique_name
from .. import communication as _c
from ..group import world
from .meta_optimizers import HybridParallelOptimizer

MIN_STEPS, MAX_STEPS = 1, 16  # an adaptive k's bounds, which are Paddle's


def _mean_over_ranks(tensor):
    return _core.scale(_core.all_reduce(tensor, op="SUM", group=world().id), 1.0 / world().nranks)


def local_steps(strategy):
    """(k_steps, begin_step, adaptive) of a strategy's localsgd or adaptive_localsgd."""
    if strategy.adaptive_localsgd:
        configs = strategy.adaptive_localsgd_configs
        return configs["init_k_steps"], configs["begin_step"], True
    return strategy.localsgd_configs["k_steps"], strategy.localsgd_configs["begin_step"], False


class LocalSGD(HybridParallelOptimizer):
    """Another optimizer's steps on a rank's own gradients. Parameters are averaged after each of the first begin_step steps, then
    every k_steps steps. When adaptive, each average in the latter chooses the next k from the loss and the learning rate:
    ⌈√(first rate · loss / (rate · first loss) · k_steps)⌉."""

    def __init__(self, optimizer, hcg, strategy):
        super().__init__(optimizer, hcg, strategy)
        k_steps, begin_step, self._adaptive = local_steps(strategy)
        self._first_k, self._begin = k_steps, begin_step
        self._local = {"step": 0, "last": begin_step, "k": k_steps, "first_loss": 0.0, "first_rate": 0.0}

    def state_dict(self):
        """The inner optimizer's, and the number of steps."""
        return {**self._inner_opt.state_dict(), "local_sgd": dict(self._local)}

    def set_state_dict(self, state_dict):
        """Takes over what state_dict() gave."""
        state = dict(state_dict)
        self._local.update(state.pop("local_sgd", {}))
        super().set_state_dict(state)

    def step(self):
        """A step, and the average of parameters where it is due."""
        if self._adaptive:
            raise ValueError("distributed_optimizer: adaptive_localsgd needs the loss; call minimize(loss) in place of step()")
        self._stepped(None)

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """A step with the gradients that loss.backward() made."""
        self._stepped(loss if self._adaptive else None)
        return [], [(p, p.grad) for p in self._parameters() if p.grad is not None]

    def _stepped(self, loss):
        local = self._local
        local["step"] += 1
        if loss is not None and local["step"] == 1:
            local["first_loss"], local["first_rate"] = self._mean(loss), float(self.get_lr())
        rate = float(self.get_lr())
        self._inner_opt.step()
        beyond = local["step"] > self._begin
        if beyond and local["step"] - local["last"] != local["k"]:
            return
        masters = self._inner_opt._master_weights
        for param in self._parameters():
            held = masters.get(param.name, param)
            _c.all_reduce(held.detach(), _c.ReduceOp.AVG)
            if held is not param:
                _core.assign_to(_core.cast(held.detach(), param.dtype), param.detach())
        local["last"] = local["step"]
        if beyond and loss is not None:
            wanted = math.sqrt(local["first_rate"] * self._mean(loss) / (rate * local["first_loss"]) * self._first_k)
            local["k"] = min(max(math.ceil(wanted), MIN_STEPS), MAX_STEPS)

    @staticmethod
    def _mean(loss):
        mean = loss.detach().clone()
        _c.all_reduce(mean, _c.ReduceOp.AVG)
        return float(mean)


class StaticLocalSGD:
    """LocalSGD of a program: a branch behind the inner optimizer's step averages all parameters in the runs in which that is due."""

    def __init__(self, optimizer, base, strategy):
        self._optimizer, self._base = optimizer, base
        self._k_steps, self._begin, self._adaptive = local_steps(strategy)

    def __getattr__(self, name):
        return getattr(self._optimizer, name)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """Adds backward, the step and the branch to the program; returns (operators, [(parameter, gradient)])."""
        from ...static.program import default_startup_program, program_guard
        from ...static.variable import program_of
        program = program_of(loss)
        with program_guard(program, startup_program or default_startup_program()):
            result = self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
            recording = _core.set_recording(False)
            try:
                with mode.opened(program._core, 2):
                    self._average(program, loss)
            finally:
                _core.set_recording(recording)
        return result

    def _average(self, program, loss):
        from ...static.nn import cond
        from ...static.variable import make_persistable

        def kept(name, dtype, value):
            return make_persistable(unique_name.generate(f"local_sgd_{name}"), [1], dtype, value)

        step, last = kept("step", _core.int64, 0), kept("last_step", _core.int64, self._begin)
        k_steps = kept("k_steps", _core.int64, self._k_steps)
        params, masters = program.all_parameters(), self._base._master_weights
        held, now = [masters.get(p.name, p) for p in params], _core.scale(step, 1.0, 1.0)
        beyond = _core.greater_than(now, _core.full([1], self._begin, _core.int64))
        due = _core.logical_or(_core.logical_not(beyond), _core.equal(_core.subtract(now, last), k_steps))
        next_k = self._next_k(loss, now, k_steps, kept) if self._adaptive else lambda: k_steps
        made = cond(due, lambda: [*map(_mean_over_ranks, held), now, cond(beyond, next_k, lambda: k_steps)],
                    lambda: [*held, last, k_steps])
        for target, value in zip([*held, last, k_steps, step], [*made, now]):
            _core.assign_to(value, target)
        for param, master in zip(params, held):
            if master is not param:
                _core.assign_to(_core.cast(master, param.dtype), param)

    def _next_k(self, loss, now, k_steps, kept):
        """Keeps the first run's loss and rate; returns the function that makes the next k."""
        from ...static.nn import cond
        loss = _core.cast(loss, _core.float32).reshape([1])
        rate = self._base._global_learning_rate().reshape([1])
        first_loss, first_rate = kept("first_loss", _core.float32, 0.0), kept("first_rate", _core.float32, 0.0)
        begins = _core.equal(now, _core.full([1], 1, _core.int64))
        begun = cond(begins, lambda: [_mean_over_ranks(loss), rate], lambda: [first_loss, first_rate])
        for target, value in zip((first_loss, first_rate), begun):
            _core.assign_to(value, target)

        def next_k():
            share = _core.divide(_core.multiply(begun[1], _mean_over_ranks(loss)), _core.multiply(rate, begun[0]))
            wanted = _core.ceil(_core.sqrt(_core.scale(share, float(self._k_steps))))
            return _core.cast(_core.clip(wanted, float(MIN_STEPS), float(MAX_STEPS)), _core.int64)

        return next_k
