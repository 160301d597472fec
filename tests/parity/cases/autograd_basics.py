"""Recording switches, grad, backward, PyLayer."""
import copy
import warnings

import paddle
from paddle.autograd import PyLayer
from parity import case, raised, rand


@case("paddle.no_grad", "paddle.is_grad_enabled", "paddle.set_grad_enabled", "paddle.enable_grad", grad=False)
def switches():
    seen = []

    @paddle.no_grad()
    def function(x):
        return (x * 2).stop_gradient, paddle.is_grad_enabled()

    @paddle.no_grad()
    def generator():
        for i in range(2):
            yield paddle.is_grad_enabled(), i

    x = rand(3)
    seen.append(function(x))
    for inside, i in generator():
        seen.append([inside, i, paddle.is_grad_enabled()])
    with paddle.no_grad():
        seen.append((x * 2).stop_gradient)
        with paddle.enable_grad():
            seen.append((x * 2).stop_gradient)
    with paddle.set_grad_enabled(False):
        seen.append(paddle.is_grad_enabled())
    seen.append(paddle.is_grad_enabled())
    return seen


@case("paddle.Tensor.backward", "paddle.autograd.backward", grad=False)
def backward_of_what_stops_gradients():
    """Nothing happens: scripts that freeze every layer in some phase go on."""
    x, w = rand(3), rand(3)
    frozen = paddle.ones([3]).sum()
    with paddle.no_grad():
        quiet = (x * w).sum()
    seen = [frozen.backward(), quiet.backward(), paddle.ones([2], "int64").backward(), x.grad, w.grad]
    paddle.autograd.backward([quiet, (x * 2).sum()])
    paddle.autograd.backward([(x * w).sum(), frozen], [paddle.to_tensor(3.0), None])
    net = paddle.nn.BatchNorm1D(3, weight_attr=False, bias_attr=False)
    net(paddle.ones([4, 3])).mean().backward()
    w.backward()
    return seen, x.grad, w.grad


@case("paddle.grad", "paddle.autograd.grad", grad=False)
def first_and_second():
    x, y = rand(3), rand(3)
    z = x * x * y + paddle.tanh(y)
    first = paddle.grad(z, [x, y], create_graph=True)
    second = paddle.grad(first[0].sum(), [x, y], retain_graph=True)
    unused = paddle.grad(x * 2, [x, y], allow_unused=True)
    weighted = paddle.grad([z], x, grad_outputs=[paddle.full([3], 2.0)])
    return [first, second, unused, weighted, x.grad]


@case("paddle.autograd.backward", grad=False)
def backward_of_many():
    x, y = rand(2, 2), rand(2, 2)
    a, b = x * y, x + y
    paddle.autograd.backward([a, b], [paddle.ones([2, 2]), None], True)
    paddle.autograd.backward([a, b], [paddle.ones([2, 2]), None])
    return [x.grad, y.grad]


class Tanh(PyLayer):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        y = paddle.tanh(x) * scale
        ctx.scale = scale
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensor()
        return dy * (ctx.scale - y * y / ctx.scale)


class Two(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b, a + b, 7

    @staticmethod
    def backward(ctx, d_product, d_sum):
        a, b = ctx.saved_tensor()
        return d_product * b + d_sum, d_product * a + d_sum


@case("paddle.autograd.PyLayer", "paddle.autograd.PyLayer.apply", "paddle.autograd.PyLayer.forward",
      "paddle.autograd.PyLayer.backward", "paddle.autograd.PyLayerContext",
      "paddle.autograd.PyLayerContext.save_for_backward", "paddle.autograd.PyLayerContext.saved_tensor")
def py_layers():
    x, y = rand(3), rand(3)
    p, s, n = Two.apply(x, y)
    return [Tanh.apply(x), Tanh.apply(x * 2, scale=3.0), p, n]


@case("paddle.autograd.PyLayer", grad=False)
def py_layer_of_constant():
    x = rand(3, grad=False)
    return [Tanh.apply(x).stop_gradient, Tanh.apply(rand(3)).stop_gradient]


@case("paddle.autograd.PyLayer", grad=False)
def py_layer_twice():
    x = rand(3)
    g, = paddle.grad(Tanh.apply(x).sum(), [x], create_graph=True)
    return [g, paddle.grad(g.sum(), [x])]


@case("paddle.autograd.PyLayerContext.set_materialize_grads",
      "paddle.autograd.PyLayerContext.mark_non_differentiable", grad=False)
def py_layer_options():
    seen = []

    class Odd(PyLayer):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            a, b = x * 2, x * 3
            ctx.mark_non_differentiable(b)
            return a, b

        @staticmethod
        def backward(ctx, da, db):
            seen.append(db)
            return da * 2

    for materialize in (True, False):
        x = rand(2)
        a, b = Odd.apply(x, materialize)
        seen.append(b.stop_gradient)
        a.sum().backward()
        seen.append(x.grad)
    return seen


@case("paddle.Tensor.register_hook", grad=False)
def hooks():
    x = rand(3)
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: None)
    (y * y).sum().backward()
    first = x.grad.clone()
    x.clear_grad()
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    removed = handle.remove()
    (y * y).sum().backward()
    return [first, x.grad, removed]


@case("paddle.autograd.jacobian", "paddle.autograd.hessian", grad=False)
def jacobian_hessian():
    x, z = rand(3), rand(4, 3)
    y = paddle.tanh(x) * x
    h = paddle.autograd.hessian((x * x * x).sum(), x)
    batched = paddle.autograd.jacobian(z * z, z, batch_axis=0)
    a, b = rand(3), rand(4)
    linear = paddle.autograd.hessian(a.sum() + b.sum(), (a, b))
    return [paddle.autograd.jacobian(y, x)[:], h[:], batched[:], *(block[:] for row in linear for block in row)]


@case("paddle.Tensor.register_hook", grad=False)
def hooks_of_constants_and_twice():
    x = rand(2, grad=False)
    kind = raised(lambda: x.register_hook(lambda g: g))
    y = rand(2)
    handle = y.register_hook(lambda g: g * 3)
    y.register_hook(lambda g: g + 1)
    (y * 2).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [kind, y.grad, handle.remove(), handle.remove()]


@case("paddle.Tensor", grad=False)
def deepcopies():
    x = rand(2, 2)
    y = copy.deepcopy(x)
    y.set_value(y * 2)
    pair = copy.deepcopy({"a": x, "b": [x]})
    return [x, y, y.stop_gradient, y.is_leaf, pair["a"] is pair["b"][0]]


@case("paddle.grad", grad=False)
def stops_on_the_way():
    x = rand(3)
    y = x * x
    z = y * x
    return [paddle.grad(z, x, no_grad_vars=[y], retain_graph=True), paddle.grad(z, x, retain_graph=True),
            paddle.grad([z.sum(), y.sum()], [x, y], retain_graph=True),
            raised(lambda: paddle.grad(z, rand(3), retain_graph=True)), raised(lambda: paddle.grad([], x))]


@case("paddle.Tensor.retain_grads", "paddle.Tensor.backward", "paddle.Tensor.grad", "paddle.Tensor.clear_gradient",
      grad=False)
def kept_and_added():
    x = rand(3)
    y = x * 2
    y.retain_grads()
    (y * y).sum().backward(retain_graph=True)
    seen = [x.grad.clone(), y.grad.clone()]
    y.backward(paddle.full([3], 0.5))
    seen.append(x.grad.clone())
    x.clear_gradient(False)
    return seen + [x.grad]


@case("paddle.autograd.jacobian", grad=False)
def jacobian_of_unused_rows():
    x = rand(3)
    y = paddle.concat([x[:2] * x[:2], paddle.ones([1])])
    return paddle.autograd.jacobian(y, x)[:]
