"""Layers under to_static in training: gradients, of gradients, running statistics and dropout as without it."""
import numpy as np
import pytest

from nets import Decorated, make, same_state, tensor, train
import proa as paddle

nn = paddle.nn


@pytest.mark.parametrize("how", ["layer", "decorator", "method"])
def test_training_is_bit_equal(how):
    eager = make()
    if how == "decorator":
        static = make(Decorated)
    else:
        static = make()
        if how == "layer":
            assert paddle.jit.to_static(static) is static
        else:
            static.forward = paddle.jit.to_static(static.forward)
    assert train(eager) == train(static)
    assert same_state(eager, static)
    assert float(static.calls) == 5
    eager.eval(), static.eval()
    x = tensor(3, 4)
    assert np.array_equal(eager(x).numpy(), static(x).numpy())
    assert float(static.calls) == 6


def test_input_gradients():
    net, twin = make(), paddle.jit.to_static(make())
    x, y = tensor(5, 4), tensor(5, 4)
    x.stop_gradient = y.stop_gradient = False
    net(x).sum().backward()
    twin(y).sum().backward()
    assert np.array_equal(x.grad.numpy(), y.grad.numpy())


def test_gradients_through_control_flow():
    def f(x):
        total = x * 0
        for i in range(4):
            if x.sum() > i:
                total = total + x * x
            else:
                total = total + x
        n = paddle.to_tensor(0)
        while n < 3:
            total = total * x
            n = n + 1
        return total.sum()
    static = paddle.jit.to_static(f)
    for seed in range(3):
        x, y = tensor(3, seed=seed), tensor(3, seed=seed)
        x.stop_gradient = y.stop_gradient = False
        f(x).backward()
        static(y).backward()
        assert np.allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-6)  # summed in another order


def test_gradients_through_changed_arguments():
    """A change in place of an argument is the caller's, too, and part of what backward goes through."""
    def f(x, w):
        y = x + w * w
        x.add_(w)
        x[0] = 2.0 * w[0]
        return y

    def spoiled(x, w):
        y = x * w
        x.add_(w)
        return y
    found = []
    for function in (f, paddle.jit.to_static(f)):
        x, w = tensor(3), tensor(3, seed=1)
        w.stop_gradient = False
        y = function(x, w)
        assert not x.stop_gradient
        (y * x).sum().backward()
        found.append((y.numpy(), x.numpy(), w.grad.numpy()))
    assert all(np.array_equal(a, b) for a, b in zip(*found))
    for function in (spoiled, paddle.jit.to_static(spoiled)):
        w.stop_gradient = False
        with pytest.raises(RuntimeError, match="changed in place afterwards"):
            function(tensor(3), w).sum().backward()


def test_leaf_arguments_may_not_be_changed():
    def f(x):
        x.add_(paddle.ones([3]))
        return x
    for function in (f, paddle.jit.to_static(f)):
        x = tensor(3)
        x.stop_gradient = False
        with pytest.raises(ValueError, match="a leaf that wants a gradient"):
            function(x)
        with paddle.no_grad():
            assert np.array_equal(function(x).numpy(), x.numpy())


def test_dropout_differs_by_call():
    net = paddle.jit.to_static(make(dropout=0.5))
    x = tensor(64, 4)
    net(x)
    assert not np.array_equal(net(x).numpy(), net(x).numpy())
    net.eval()
    assert np.array_equal(net(x).numpy(), net(x).numpy())


def test_no_grad_records_nothing():
    net = paddle.jit.to_static(make())
    with paddle.no_grad():
        assert net(tensor(3, 4)).stop_gradient
    assert not net(tensor(3, 4)).stop_gradient


def test_gradients_inside():
    @paddle.jit.to_static
    def slope(x):
        y = (x * x * x).sum()
        d, = paddle.grad(y, x, create_graph=True)
        return (d * d).sum()
    x = tensor(3)
    x.stop_gradient = False
    out = slope(x)
    out.backward()
    assert np.allclose(float(out), (9 * x.numpy() ** 4).sum(), rtol=1e-5)
    assert np.allclose(x.grad.numpy(), 36 * x.numpy() ** 3, rtol=1e-5)


class Scored(paddle.nn.Layer):
    """Normalized, with dropout; the score's gradient is wanted again."""

    def __init__(self):
        super().__init__()
        self.first, self.second = paddle.nn.Linear(4, 5), paddle.nn.Linear(5, 1)
        self.norm = paddle.nn.BatchNorm1D(5)

    def forward(self, x):
        hidden = paddle.nn.functional.dropout(paddle.tanh(self.norm(self.first(x))), 0.3)
        return self.second(hidden) * hidden.sum()


def gradient_penalty(static):
    paddle.seed(3)
    layer = Scored()
    call = paddle.jit.to_static(layer) if static else layer
    x = paddle.to_tensor(np.random.RandomState(0).randn(6, 4).astype("float32"), stop_gradient=False)
    found = []
    for _ in range(2):
        score = call(x)
        dx, = paddle.grad([score.sum()], [x], create_graph=True)
        ((score ** 2).mean() + ((dx ** 2).sum() - 1) ** 2).backward()
        gradients = [dx, x.grad, *(p.grad for p in layer.parameters() if p.grad is not None), *layer.buffers()]
        found += [one.numpy() for one in gradients]
        x.clear_grad()
        layer.clear_gradients()
    return found


def test_gradient_of_a_gradient():
    eager, static = gradient_penalty(False), gradient_penalty(True)
    assert len(eager) == len(static)
    largest = max(np.abs(one).max() for one in eager)  # a bias before the norm has a gradient of rounding alone
    for one, other in zip(eager, static):
        assert np.abs(one - other).max() <= 1e-5 * largest


class Product(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w = self.create_parameter([1], default_initializer=paddle.nn.initializer.Constant(2.0))

    def forward(self, x):
        return paddle.sin(x * self.w) * x


def test_third_gradient_where_inputs_depend_on_parameters():
    found = []
    for static in (False, True):
        layer = Product()
        call = paddle.jit.to_static(layer) if static else layer
        z = paddle.to_tensor([0.7], stop_gradient=False)
        x = z * layer.w
        y = call(x) + call(x * z)
        first = paddle.grad([y], [z, layer.w], create_graph=True)
        second = paddle.grad([first[0] + first[1]], [z, layer.w], create_graph=True)
        third = paddle.grad([second[0] * second[1]], [z, layer.w])
        found.append([float(one) for one in (*first, *second, *third)])
    assert np.allclose(found[0], found[1], rtol=1e-6)


def test_gradient_of_a_gradient_is_refused():
    @paddle.jit.to_static
    def branches(x):
        if x.sum() > 0:
            x = x * x
        return x
    x = paddle.ones([2])
    x.stop_gradient = False
    with pytest.raises(NotImplementedError, match="branches or loops has no gradient of its gradient"):
        paddle.grad([branches(x).sum()], [x], create_graph=True)

    call = paddle.jit.to_static(Product())
    h = x * 1
    y = call(h)
    h.add_(paddle.ones([2]))
    with pytest.raises(RuntimeError, match="an input was changed in place"):
        paddle.grad([y.sum()], [x], create_graph=True)


class Normed(paddle.nn.Layer):
    """Batch norm that trains inside a loop, and in a branch inside it."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear = paddle.nn.BatchNorm1D(4), paddle.nn.Linear(4, 4)

    def forward(self, x, turns):
        i = paddle.zeros([], "int64")
        while i < turns:
            x = self.linear(x)
            if i > 0:
                x = self.norm(x)
            i = i + 1
        return x


class NormedInBranches(Normed):
    """Batch norm that trains in a branch, and again in one inside it; the other branch leaves it alone."""

    def forward(self, x, turns):
        y = self.linear(x)
        if x.mean() < 0.5:
            y = self.norm(y * x)
            if y.max() > 1.5:
                y = y + self.norm(y) * 2
        return y


def trained_statistics(static, kind=Normed):
    paddle.seed(1)
    layer = kind()
    call = paddle.jit.to_static(layer) if static else layer
    found = []
    for seed in range(5):
        x = paddle.to_tensor(np.random.RandomState(seed).rand(6, 4).astype("float32"))
        (call(x, paddle.to_tensor(3)) ** 2).sum().backward()
        found += [one.numpy() for one in (layer.norm._mean, layer.norm._variance)]
        found += [np.zeros(p.shape) if p.grad is None else p.grad.numpy() for p in layer.parameters()]
        layer.clear_gradients()
    return found


@pytest.mark.parametrize("kind", [Normed, NormedInBranches])
def test_statistics_move_in_control_flow(kind):
    eager, static = trained_statistics(False, kind), trained_statistics(True, kind)
    assert len(eager) == len(static) and all(np.array_equal(a, b) for a, b in zip(eager, static))
