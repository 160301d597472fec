"""LBFGS, and the minimizers of functions."""
import numpy as np
import paddle

from parity import array, case, raised


def bowl(x):
    """Convex, with a minimum that is no sum of squares."""
    return paddle.logsumexp(x) + ((x - paddle.to_tensor([1.0, -2.0], dtype="float64")) ** 2).sum()


def trained(search, cls, rounds=3, **options):
    """The losses and the parameters of a few calls of step."""
    w = paddle.to_tensor(np.linspace(-1, 1, 6).reshape(3, 2).astype("float32"), stop_gradient=False)
    b = paddle.to_tensor(np.zeros(2, "float32"), stop_gradient=False)
    x, y = paddle.to_tensor(array(8, 3).astype("float32")), paddle.to_tensor(array(8, 2).astype("float32"))
    opt = cls(parameters=[w, b], line_search_fn=search, **options)

    def closure():
        opt.clear_grad()
        loss = ((paddle.matmul(x, w).tanh() + b - y) ** 2).mean()
        loss.backward()
        return loss
    return [float(opt.step(closure)) for _ in range(rounds)] + [w.detach(), b.detach()], sorted(opt.state_dict())


# Sums are rounded otherwise, and steps follow from differences of gradients.
@case("paddle.optimizer.LBFGS", "paddle.optimizer.LBFGS.step", "paddle.optimizer.LBFGS.state_dict",
      "paddle.incubate.optimizer.LBFGS", grad=False, tol=1e-3)
def lbfgs():
    return (trained(None, paddle.optimizer.LBFGS, learning_rate=0.3, max_iter=4),
            trained("strong_wolfe", paddle.optimizer.LBFGS, max_iter=5, history_size=3),
            trained("strong_wolfe", paddle.incubate.optimizer.LBFGS, rounds=1, max_iter=6))


@case("paddle.incubate.optimizer.functional.minimize_bfgs", "paddle.incubate.optimizer.functional.minimize_lbfgs", grad=False,
      tol=1e-4)  # both end near the minimum, by steps of their own
def functions():
    from paddle.incubate.optimizer.functional import minimize_bfgs, minimize_lbfgs
    start = paddle.to_tensor(np.array([-1.2, 1.0]))
    goal = paddle.to_tensor([1.0, -2.0, 3.0])
    out = [minimize_bfgs(bowl, start, dtype="float64"), minimize_lbfgs(bowl, start, dtype="float64"),
           minimize_bfgs(lambda x: ((x - goal) ** 2).sum(), paddle.zeros([3])),
           minimize_lbfgs(lambda x: ((x - goal) ** 2).sum(), paddle.zeros([3]))]
    return ([bool(o[0]) for o in out], [o[2] for o in out], [o[3] for o in out[:2]],
            [float(o[4].abs().max()) < 1e-4 for o in out],
            raised(lambda: minimize_bfgs(bowl, start, line_search_fn="none", dtype="float64")),
            raised(lambda: minimize_bfgs(bowl, start, dtype="int32")))
