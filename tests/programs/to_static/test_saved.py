"""Values that a compiled call saves for its backward: they stay where they were computed, views are made again, and a
backward that may not come again works in the memory of what is saved."""
import numpy
import pytest

import proa as paddle
from proa import nn


class Attention(nn.Layer):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 12)
        self.out = nn.Linear(12, 6)

    def forward(self, x):
        q, k, v = (paddle.transpose(part(x).reshape([2, 5, 3, 4]), [0, 2, 1, 3]) for part in (self.q, self.k, self.v))
        weights = nn.functional.softmax(paddle.matmul(q * 0.5, k, transpose_y=True))
        mixed = paddle.transpose(paddle.matmul(weights, v), [0, 2, 1, 3]).reshape([2, 5, 12])
        return self.out(nn.functional.gelu(mixed)), weights


def data():
    return paddle.to_tensor(numpy.random.RandomState(3).randn(2, 5, 12).astype("float32"))


def pair():
    nets = []
    for _ in range(2):
        paddle.seed(5)
        nets.append(Attention())
    return nets[0], paddle.jit.to_static(nets[1]), nets[1]


def gradients(net):
    return [p.grad.numpy() for p in net.parameters()]


def close(a, b):
    for x, y in zip(a, b):
        numpy.testing.assert_allclose(x, y, rtol=0, atol=1e-5 * max(1, abs(y).max()))


def test_steps_like_eager():
    plain, call, net = pair()
    adam = [paddle.optimizer.Adam(0.01, parameters=n.parameters()) for n in (plain, net)]
    for step in range(6):
        for fn, optimizer in zip((plain, call), adam):
            y, weights = fn(data())
            (y.square().mean() + weights.square().sum()).backward()
        close(gradients(net), gradients(plain))
        for optimizer in adam:
            optimizer.step()
            optimizer.clear_grad(set_to_zero=step % 2 == 0)
    close([p.numpy() for p in net.parameters()], [p.numpy() for p in plain.parameters()])


def test_several_calls_before_a_backward():
    plain, call, net = pair()
    for fn in (plain, call):
        first, second = fn(data()), fn(data() * 2)
        (first[0].sum() + second[0].square().sum()).backward()
    close(gradients(net), gradients(plain))


def test_retained_graph():
    plain, call, net = pair()
    for fn in (plain, call):
        y, _ = fn(data())
        loss = y.square().sum()
        for retain in (True, True, False):
            loss.backward(retain_graph=retain)
    close(gradients(net), gradients(plain))
    with pytest.raises(RuntimeError, match="retain_graph"):
        loss.backward()


def test_a_gradient_that_is_held_stays():
    _, call, net = pair()
    call(data())[0].sum().backward()
    held = net.out.weight.grad
    before = held.numpy().copy()
    net.clear_gradients()
    call(data() * 3)[0].sum().backward()
    assert (held.numpy() == 0).all() or (held.numpy() == before).all()
    assert not (net.out.weight.grad.numpy() == before).all()


@pytest.mark.parametrize("what", ["input", "output"])
def test_changed_in_place(what):
    @paddle.jit.to_static
    def fn(x, w):
        return nn.functional.softmax(x * w)
    x, w = data(), paddle.ones([12])
    w.stop_gradient = False
    y = fn(x, w)
    (x if what == "input" else y.detach()).fill_(2.0)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.square().sum().backward()


def test_input_that_is_no_longer_held_by_the_caller():
    plain, call, net = pair()
    x = data()
    x.stop_gradient = False
    y, _ = call(x[:, ::1] * 1.0)
    del x
    paddle.ones([2, 5, 12])
    y.sum().backward()
    plain(data())[0].sum().backward()
    close(gradients(net), gradients(plain))
