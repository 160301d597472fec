"""Optimizers round others: LookAhead (Zhang et al., 2019) and averages of parameters over a window."""
import contextlib

from ... import _core
from ...autograd.guards import no_grad
from ...optimizer import Optimizer

__all__ = ["LBFGS", "LookAhead", "ModelAverage"]

_OLD = ("LarsMomentumOptimizer", "PipelineOptimizer", "RecomputeOptimizer")  # of 1.x, which Paddle 2.6 has here
_RESTART = 16384  # after so many updates the running sum moves on, for the sake of its rounding


class LookAhead(Optimizer):
    """Every k steps of inner_optimizer the slow weights go alpha of the way to the fast ones, which restart there."""

    def __init__(self, inner_optimizer, alpha=0.5, k=5, name=None):
        if inner_optimizer is None:
            raise AssertionError("LookAhead: inner_optimizer must be an Optimizer, got None")
        if not 0.0 <= alpha <= 1.0:
            raise AssertionError(f"LookAhead: alpha must be between 0 and 1, got {alpha}")
        if not isinstance(k, int) or k < 1:
            raise AssertionError(f"LookAhead: k must be a positive int, got {k!r}")
        self.inner_optimizer, self.alpha, self.k, self.type = inner_optimizer, alpha, k, "lookahead"
        self._steps = 0
        super().__init__(learning_rate=alpha, parameters=inner_optimizer._all_parameters(), weight_decay=None,
                         grad_clip=None, name=name)

    def _set_auxiliary_var(self, key, value):
        super()._set_auxiliary_var(key, value)
        self.inner_optimizer._set_auxiliary_var(key, value)

    @no_grad()
    def step(self):
        """A step of the inner optimizer; each k-th also moves the slow weights."""
        self.inner_optimizer.step()
        self._follow()

    def _follow(self):
        self._steps += 1
        for param in self._all_parameters():
            if not param.trainable or param.grad is None:
                continue
            slow = self._add_accumulator("slow", param)
            if self._steps == 1:
                slow.set_value(param)
            if self._steps % self.k == 0:
                moved = self.alpha * param + (1.0 - self.alpha) * slow
                param.set_value(moved)
                slow.set_value(moved)

    @no_grad()
    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """A step, after loss.backward(); returns what the inner optimizer's minimize returns."""
        if not isinstance(loss, _core.Tensor):
            raise AssertionError(f"LookAhead.minimize: loss must be a Tensor, got {type(loss).__name__}")
        done = self.inner_optimizer.minimize(loss, startup_program, parameters, no_grad_set)
        self._follow()
        return done


class ModelAverage(Optimizer):
    """Keeps sums of the parameters; inside `with average.apply():` the parameters are their means.

    The window is average_window_rate of all updates, at least min_average_window, at most max_average_window.
    """

    def __init__(self, average_window_rate, parameters=None, min_average_window=10000, max_average_window=10000,
                 name=None):
        super().__init__(learning_rate=0.0, parameters=parameters, weight_decay=None, grad_clip=None, name=name)
        self.average_window, self.type = average_window_rate, "average_accumulates"
        self.min_average_window, self.max_average_window = min_average_window, max_average_window

    def _create_accumulators(self, block, parameters):
        for param in parameters:
            for name in ("sum_1", "sum_2", "sum_3", "restore"):
                self._add_accumulator(name, param)
            for name in ("num_accumulates", "old_num_accumulates", "num_updates"):
                self._add_accumulator(name, param, dtype=_core.int64, shape=[1])

    @no_grad()
    def step(self):
        """Adds the parameters to their sums: call it after the training optimizer's step."""
        self._create_accumulators(None, self._all_parameters())
        for param in self._all_parameters():
            if param.trainable and param.grad is not None:
                self._accumulate(param)

    def _accumulate(self, param):
        one, two, three, count, old, updates = (self._get_accumulator(n, param) for n in (
            "sum_1", "sum_2", "sum_3", "num_accumulates", "old_num_accumulates", "num_updates"))
        n, done = count.item() + 1, updates.item() + 1
        one.add_(param.astype(one.dtype))
        if done % _RESTART == 0:
            two.add_(one)
            one.zero_()
        if n >= self.min_average_window and n >= min(self.max_average_window, int(done * self.average_window)):
            three.set_value(one + two)
            one.zero_()
            two.zero_()
            old.fill_(n)
            n = 0
        count.fill_(n)
        updates.fill_(done)

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """The same as step()."""
        self.step()

    @contextlib.contextmanager
    def apply(self, executor=None, need_restore=True):
        """Inside the with block the parameters are the means; afterwards what they were, unless need_restore=False."""
        self._exchange()
        try:
            yield
        finally:
            if need_restore:
                self.restore()

    @no_grad()
    def _exchange(self):
        for param in self._all_parameters():
            self._get_accumulator("restore", param).set_value(param)
            total = sum((self._get_accumulator(n, param) for n in ("sum_2", "sum_3")),
                        self._get_accumulator("sum_1", param))
            count = self._get_accumulator("num_accumulates", param) + self._get_accumulator("old_num_accumulates", param)
            param.set_value((total.astype("float32") / count.astype("float32")).astype(param.dtype))

    @no_grad()
    def restore(self, executor=None):
        """The parameters as they were before apply."""
        for param in self._all_parameters():
            param.set_value(self._get_accumulator("restore", param))


def __getattr__(name):
    if name == "LBFGS":
        from ...optimizer.lbfgs import LBFGS
        return LBFGS
    if name in _OLD:
        from ...fluid import optimizer
        return getattr(optimizer, name)
    if name == "GradientMergeOptimizer":
        from .gradient_merge import GradientMergeOptimizer
        return GradientMergeOptimizer
    if name == "functional":
        import importlib
        return importlib.import_module(".functional", __name__)
    raise AttributeError(f"module 'paddle.incubate.optimizer' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), "GradientMergeOptimizer", "LBFGS", "functional", *_OLD})
