"""GradientMergeOptimizer: a program's optimizer that makes a step of several runs' gradients."""
from ...distributed.fleet.static_optimizers import GradientMerge
from ...framework.mode import in_dynamic_mode

__all__ = ["GradientMergeOptimizer"]


class GradientMergeOptimizer(GradientMerge):
    """inner_optimizer, of which every k_steps-th run of the program makes a step with the average (or sum) of the runs' gradients."""

    def __init__(self, inner_optimizer, k_steps=1, avg=True):
        if in_dynamic_mode():
            raise Exception("In dygraph, GradientMergeOptimizer is not there: call backward() k_steps times before step().")
        if inner_optimizer is None:
            raise AssertionError("GradientMergeOptimizer: inner_optimizer must be an Optimizer, got None")
        if not isinstance(k_steps, int) or k_steps < 1:
            raise AssertionError(f"GradientMergeOptimizer: k_steps must be a positive int, got {k_steps!r}")
        super().__init__(inner_optimizer, inner_optimizer, k_steps, avg)

    def _set_k_steps(self, k_steps):
        self._k_steps = k_steps

    def _set_avg(self, avg):
        self._avg = avg
