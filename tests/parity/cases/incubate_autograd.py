"""paddle.incubate.autograd: products with Jacobians, Jacobians and Hessians of functions."""
import numpy as np
import paddle

from parity import case, rand, raised


def outer(x, y):
    return paddle.matmul(x, y).tanh()


@case("paddle.incubate.autograd.vjp", "paddle.incubate.autograd.jvp", grad=False)
def products():
    x, y, v = rand(2, 3), rand(3, 2), rand(2, 2)
    along = (rand(2, 3), rand(3, 2))
    return (paddle.incubate.autograd.vjp(outer, [x, y]), paddle.incubate.autograd.vjp(outer, [x, y], v),
            paddle.incubate.autograd.vjp(paddle.tanh, x), paddle.incubate.autograd.jvp(outer, [x, y]),
            paddle.incubate.autograd.jvp(outer, [x, y], along), paddle.incubate.autograd.jvp(paddle.tanh, x, along[0]))


@case("paddle.incubate.autograd.Jacobian", "paddle.incubate.autograd.Jacobian.shape")
def jacobians():
    x, y, b = rand(2, 3), rand(3, 2), rand(4, 2)
    J = paddle.incubate.autograd.Jacobian(outer, [x, y])
    B = paddle.incubate.autograd.Jacobian(lambda t: t ** 3 + t.sum(1, keepdim=True), b, is_batched=True)
    return list(J.shape), J[:], J[0, :], J[1:3, 2:], J[:, -1], list(B.shape), B[:], B[:, 1, :], B[1:3, :, 0]


@case("paddle.incubate.autograd.Hessian", "paddle.incubate.autograd.Hessian.shape")
def hessians():
    x, b = rand(3), rand(4, 2)
    H = paddle.incubate.autograd.Hessian(lambda t: (t ** 3).sum() * t[0], x)
    B = paddle.incubate.autograd.Hessian(lambda t: (t ** 3).sum(1, keepdim=True) * t[:, :1], b, is_batched=True)
    bad = raised(lambda: paddle.incubate.autograd.Hessian(lambda t: t, x)[:])
    return list(H.shape), H[:], H[1, 1:], list(B.shape), B[:], bad


@case("paddle.incubate.autograd.forward_grad", "paddle.incubate.autograd.grad", "paddle.incubate.autograd.enable_prim",
      "paddle.incubate.autograd.disable_prim", grad=False)
def in_programs():
    paddle.enable_static()
    paddle.incubate.autograd.enable_prim()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main, paddle.static.Program()):
            x = paddle.static.data("x", [2, 2], "float32")
            x.stop_gradient = False
            y = paddle.tanh(x * x)
            forward = paddle.incubate.autograd.forward_grad(y, x)
            z = paddle.tanh(x * 3.0)
            back = paddle.incubate.autograd.grad(z, x)
            # Paddle's primitive ops are lowered by hand
            getattr(paddle.incubate.autograd, "prim2orig", lambda block: None)(main.block(0))
        exe = paddle.static.Executor()
        feed = {"x": np.array([[0.5, 1.0], [0.25, -1.0]], "float32")}
        return exe.run(main, feed=feed, fetch_list=[forward, back])
    finally:
        paddle.incubate.autograd.disable_prim()
        paddle.disable_static()
