"""LBFGS: the limited-memory BFGS method (Nocedal, 1980), which keeps the last changes of parameters and gradients."""
from .. import _core
from ..autograd.guards import enable_grad, no_grad
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer


def _dot(x, y):
    return float(_core.sum(_core.multiply(x, y)))


def _largest(x):
    return float(_core.max(_core.abs(x)))


class LBFGS(Optimizer):
    """step takes a closure that clears gradients, computes the loss, calls backward and returns the loss; it calls it up
    to max_eval times. line_search_fn "strong_wolfe" looks for a step length, otherwise learning_rate is it.

    >>> x = paddle.create_parameter([2], "float32")
    >>> opt = paddle.optimizer.LBFGS(parameters=[x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     opt.clear_grad()
    ...     loss = ((x - 3.0) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> loss = opt.step(closure)
    >>> [round(v, 3) for v in x.tolist()]
    [3.0, 3.0]
    """

    def __init__(self, learning_rate=1.0, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None, parameters=None, weight_decay=None, grad_clip=None, name=None):
        if isinstance(parameters, _core.Tensor):
            raise TypeError("LBFGS: parameters must be an iterable of Tensors or dicts, got a Tensor")
        self.learning_rate, self.max_iter = learning_rate, max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError(f"LBFGS: line_search_fn must be None or 'strong_wolfe', got {line_search_fn!r}")
        super().__init__(learning_rate=1.0, parameters=parameters, weight_decay=weight_decay, grad_clip=grad_clip,
                         name=name)
        groups = self._parameter_list
        self._params = [p for g in groups for p in g["params"]] if groups and isinstance(groups[0], dict) else groups
        self.state = {}

    def state_dict(self):
        return {"state": dict(self.state)}

    def set_state_dict(self, state_dict):
        self.state = dict(state_dict["state"])

    set_dict = set_state_dict

    # ---- parameters as one vector ----

    def _gradient(self):
        parts = [_core.full([p.size], 0, p.dtype) if p.grad is None else _core.reshape(p.grad, [-1])
                 for p in self._params]
        return _core.concat(parts, 0)

    def _move(self, step, direction):
        """Adds step·direction to the parameters."""
        at = 0
        for p in self._params:
            part = _core.reshape(_core.slice(direction, [0], [at], [at + p.size]), list(p.shape))
            p.set_value(_core.add(p, _core.scale(part, step)))
            at += p.size

    def _search(self, closure, loss, gradient, slope, step, direction):
        """The Point that the line search takes, and its evaluations; the parameters stay where they are."""
        kept = [_core.assign(p) for p in self._params]

        def evaluate(length):
            self._move(length, direction)
            value = float(closure())
            made = self._gradient()
            for p, was in zip(self._params, kept):
                p.set_value(was)
            return Point(length, value, made, _dot(made, direction))
        return strong_wolfe(evaluate, Point(0.0, loss, gradient, slope), step, _largest(direction))

    # ---- directions ----

    def _remember(self, gradient):
        """Takes the last step's changes into the history, if the curvature along it was positive."""
        s = self.state
        y, moved = _core.subtract(gradient, s["prev_flat_grad"]), _core.scale(s["d"], s["alpha"])
        curvature = _dot(y, moved)
        if curvature <= 1e-10:
            return
        s["old_yk"], s["old_sk"] = (list(s[k][-self.history_size + 1:] if self.history_size > 1 else [])
                                    for k in ("old_yk", "old_sk"))
        s["ro"] = [1.0 / _dot(a, b) for a, b in zip(s["old_yk"], s["old_sk"])] + [1.0 / curvature]
        s["old_yk"].append(y)
        s["old_sk"].append(moved)
        s["H_diag"] = curvature / _dot(y, y)

    def _direction(self, gradient):
        """Minus the approximate inverse Hessian times the gradient, by the two-loop recursion."""
        s, q, factors = self.state, _core.neg(gradient), []
        for y, moved, ro in zip(reversed(s["old_yk"]), reversed(s["old_sk"]), reversed(s["ro"])):
            factors.append(_dot(moved, q) * ro)
            q = _core.subtract(q, _core.scale(y, factors[-1]))
        r = _core.scale(q, s["H_diag"])
        for y, moved, ro, factor in zip(s["old_yk"], s["old_sk"], s["ro"], reversed(factors)):
            r = _core.add(r, _core.scale(moved, factor - _dot(y, r) * ro))
        return r

    def step(self, closure):
        """Up to max_iter steps; returns the loss before the first."""
        evaluate = enable_grad()(closure)
        with no_grad():
            first = evaluate()
            s, loss, calls = self.state, float(first), 1
            s["func_evals"] = s.get("func_evals", 0) + 1
            s.setdefault("n_iter", 0)
            gradient = self._gradient()
            if _largest(gradient) > self.tolerance_grad:
                self._iterate(evaluate, loss, gradient, calls)
        return first

    def _iterate(self, closure, loss, gradient, calls):
        s = self.state
        for n in range(1, self.max_iter + 1):
            s["n_iter"] += 1
            if s["n_iter"] == 1:
                s.update(d=_core.neg(gradient), old_yk=[], old_sk=[], ro=[], H_diag=1.0)
                step = min(1.0, 1.0 / float(_core.sum(_core.abs(gradient)))) * self.learning_rate
            else:
                self._remember(gradient)
                s["d"], step = self._direction(gradient), self.learning_rate
            s.update(prev_flat_grad=gradient, prev_loss=loss, alpha=step)
            before, slope, made = loss, _dot(gradient, s["d"]), 0
            if slope > -self.tolerance_change:
                break
            if self.line_search_fn is not None:
                point, made = self._search(closure, loss, gradient, slope, step, s["d"])
                loss, gradient, step = point.loss, point.gradient, point.step
                s["alpha"] = step
                self._move(step, s["d"])
            else:
                self._move(step, s["d"])
                if n != self.max_iter:
                    loss, made = float(closure()), 1
                    gradient = self._gradient()
            calls += made
            s["func_evals"] += made
            if (_largest(gradient) <= self.tolerance_grad or _largest(s["d"]) * step <= self.tolerance_change
                    or abs(loss - before) < self.tolerance_change or calls >= self.max_eval):
                break
