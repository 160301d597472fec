"""Minimizers of functions of one tensor: BFGS and L-BFGS with a line search for the strong Wolfe conditions."""
from ... import _core
from ...autograd.backward_mode import grad
from ...autograd.guards import enable_grad, no_grad
from ...optimizer.line_search import Point, strong_wolfe

__all__ = ["minimize_bfgs", "minimize_lbfgs"]


def _dot(x, y):
    return float(_core.sum(_core.multiply(x, y)))


def _largest(x):
    return float(_core.max(_core.abs(x)))


class _Problem:
    """The objective with its gradient; calls counts how often it was evaluated."""

    def __init__(self, func, dtype):
        self.func, self.dtype, self.calls = func, dtype, 0

    def at(self, x):
        self.calls += 1
        x = x.detach()
        x.stop_gradient = False
        with enable_grad():
            value = self.func(x)
            made = grad(value, x)[0]
        return float(value), made.detach(), value.detach()


def _check(who, x, line_search_fn, dtype):
    if dtype not in ("float32", "float64"):
        raise ValueError(f"{who}: dtype must be 'float32' or 'float64', got {dtype!r}")
    if line_search_fn != "strong_wolfe":
        raise NotImplementedError(f"{who}: line_search_fn must be 'strong_wolfe', got {line_search_fn!r}")
    if str(x.dtype).rpartition(".")[2] != dtype:
        raise ValueError(f"{who}: initial_position must be {dtype}, got {x.dtype}")


def _first_inverse(who, given, n, dtype):
    """The identity, or what was given if it is symmetric and positive definite."""
    if given is None:
        return _core.eye(n, n, dtype)
    if not bool(_core.allclose(given, _core.transpose(given, [1, 0]))):
        raise ValueError(f"{who}: initial_inverse_hessian_estimate must be symmetric")
    try:
        _core.cholesky(given)
    except Exception as e:
        raise ValueError(f"{who}: initial_inverse_hessian_estimate must be positive definite: {e}") from None
    return given


def _minimize(problem, x, direction, update, max_iters, tolerance_grad, tolerance_change, max_tries, first_step):
    """(converged, position, value, gradient): steps along direction(gradient), of which update(step, change) learns."""
    number, gradient, value = problem.at(x)
    converged = _largest(gradient) < tolerance_grad
    for _ in range(max_iters):
        if converged:
            break
        along = direction(gradient)
        slope = _dot(gradient, along)

        def evaluate(length):
            loss, made, _ = problem.at(_core.add(x, _core.scale(along, length)))
            return Point(length, loss, made, _dot(made, along))
        point, _ = strong_wolfe(evaluate, Point(0.0, number, gradient, slope), first_step, _largest(along),
                                tolerance=tolerance_change, most=max_tries)
        step = _core.scale(along, point.step)
        update(step, _core.subtract(point.gradient, gradient))
        x, number, gradient = _core.add(x, step), point.loss, point.gradient
        converged = _largest(gradient) < tolerance_grad
        if _largest(step) < tolerance_change:
            converged = converged or point.step > 0
            break
    return converged, x, _core.full([], number, problem.dtype) if not value.shape else _core.full(
        list(value.shape), number, problem.dtype), gradient


def minimize_bfgs(objective_func, initial_position, max_iters=50, tolerance_grad=1e-7, tolerance_change=1e-9,
                  initial_inverse_hessian_estimate=None, line_search_fn="strong_wolfe", max_line_search_iters=50,
                  initial_step_length=1.0, dtype="float32", name=None):
    """Minimizes objective_func from initial_position with BFGS (Nocedal and Wright, algorithm 6.1): whether it converged,
    how often it evaluated the function, position, value, gradient, and the estimate of the inverse Hessian.

    >>> f = lambda x: ((x - 2.0) ** 2).sum()
    >>> [round(v, 3) for v in paddle.incubate.optimizer.functional.minimize_bfgs(f, paddle.zeros([2]))[2].tolist()]
    [2.0, 2.0]
    """
    who = "minimize_bfgs"
    _check(who, initial_position, line_search_fn, dtype)
    n = initial_position.shape[0]
    with no_grad():
        problem, eye = _Problem(objective_func, dtype), _core.eye(n, n, dtype)
        inverse = [_first_inverse(who, initial_inverse_hessian_estimate, n, dtype)]

        def direction(gradient):
            return _core.neg(_core.matmul(inverse[0], gradient))

        def update(step, change):
            curvature = _dot(step, change)
            if curvature <= 0:
                return
            s, y = _core.reshape(step, [-1, 1]), _core.reshape(change, [-1, 1])
            left = _core.subtract(eye, _core.scale(_core.matmul(s, y, False, True), 1 / curvature))
            spread = _core.scale(_core.matmul(s, s, False, True), 1 / curvature)
            inverse[0] = _core.add(_core.matmul(_core.matmul(left, inverse[0]), left, False, True), spread)
        made = _minimize(problem, initial_position, direction, update, max_iters, tolerance_grad, tolerance_change,
                         max_line_search_iters, initial_step_length)
        return (_core.full([1], made[0], "bool"), _core.full([1], problem.calls, "int64"), *made[1:], inverse[0])


def minimize_lbfgs(objective_func, initial_position, history_size=100, max_iters=50, tolerance_grad=1e-8,
                   tolerance_change=1e-8, initial_inverse_hessian_estimate=None, line_search_fn="strong_wolfe",
                   max_line_search_iters=50, initial_step_length=1.0, dtype="float32", name=None):
    """Minimizes objective_func as minimize_bfgs does, from the last history_size steps instead of a matrix; returns all
    but the matrix."""
    who = "minimize_lbfgs"
    _check(who, initial_position, line_search_fn, dtype)
    n = initial_position.shape[0]
    with no_grad():
        problem, history = _Problem(objective_func, dtype), []
        first = None if initial_inverse_hessian_estimate is None else _first_inverse(
            who, initial_inverse_hessian_estimate, n, dtype)

        def direction(gradient):
            q, factors = gradient, []
            for s, y, rho in reversed(history):
                factors.append(rho * _dot(s, q))
                q = _core.subtract(q, _core.scale(y, factors[-1]))
            if first is not None:
                q = _core.matmul(first, q)
            elif history:
                s, y, rho = history[-1]
                q = _core.scale(q, 1 / (rho * _dot(y, y)))
            for (s, y, rho), factor in zip(history, reversed(factors)):
                q = _core.add(q, _core.scale(s, factor - rho * _dot(y, q)))
            return _core.neg(q)

        def update(step, change):
            curvature = _dot(step, change)
            if curvature > 0:
                history.append((step, change, 1 / curvature))
                del history[:-history_size]
        made = _minimize(problem, initial_position, direction, update, max_iters, tolerance_grad, tolerance_change,
                         max_line_search_iters, initial_step_length)
        return _core.full([1], made[0], "bool"), _core.full([1], problem.calls, "int64"), *made[1:]
