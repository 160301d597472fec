"""Recurrent networks of float32, whose cells have registers of sixteen numbers where there are such: all widths agree with
float64, extreme gates included, and no bit depends on the number of threads."""
import numpy as np
import pytest

import proa as paddle
from proa import nn

KINDS = {"LSTM": nn.LSTM, "GRU": nn.GRU, "SimpleRNN": nn.SimpleRNN}


@pytest.fixture(autouse=True)
def flags():
    yield
    paddle.set_flags({"FLAGS_num_threads": 0})
    paddle.set_default_dtype("float32")


def trained(kind, hidden, dtype="float32", scale=1.0, batch=5, steps=4, threads=0):
    """Outputs, states and all gradients of two layers in both directions over rows of different lengths."""
    paddle.set_flags({"FLAGS_num_threads": threads})
    paddle.set_default_dtype(dtype)
    rng = np.random.RandomState(hidden)
    net = KINDS[kind](7, hidden, num_layers=2, direction="bidirect")
    for p in net.parameters():
        p.set_value((rng.randn(*p.shape) * scale * hidden ** -0.5).astype(dtype))

    def tensor(*shape):
        return paddle.to_tensor(rng.randn(*shape).astype(dtype), stop_gradient=False)
    x, states = tensor(batch, steps, 7), [tensor(4, batch, hidden) for _ in range(2 if kind == "LSTM" else 1)]
    lengths = paddle.to_tensor(np.arange(batch) % steps + 1)
    y, last = net(x, tuple(states) if kind == "LSTM" else states[0], sequence_length=lengths)
    last = list(last) if kind == "LSTM" else [last]
    loss = (y * y + y).sum()
    for i, state in enumerate(last):
        loss = loss + (state * (i + 0.5)).sum()
    loss.backward()
    return [t.numpy() for t in [y, *last, x.grad, *[s.grad for s in states], *[p.grad for p in net.parameters()]]]


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("hidden", [1, 15, 16, 17, 31, 32, 49, 70])
@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_double(kind, hidden, scale):
    if scale > 1:  # where gates jump, no two roundings stay together: they saturate, and nothing becomes NaN
        assert all(np.isfinite(t).all() for t in trained(kind, hidden, scale=scale, steps=2))
        return
    for got, want in zip(trained(kind, hidden), trained(kind, hidden, "float64")):
        np.testing.assert_allclose(got, want, rtol=0, atol=4e-6 * max(1, np.abs(want).max()))


def test_slopes_of_saturated_gates():
    """1 − y² and y · (1 − y) of float32's y that is all but 1: as exact as of float64's; infinite gradients stay what they are."""
    def slopes(dtype, above=1.0):
        paddle.set_default_dtype(dtype)
        net = nn.LSTM(4, 20)
        for p in net.parameters():
            p.set_value(np.zeros(p.shape, dtype))
        bias = [p for p in net.parameters() if p.ndim == 1][0]
        bias.set_value(np.linspace(2.0, 4.0, 80).astype(dtype))
        (net(paddle.ones([1, 1, 4], dtype))[0] * above).sum().backward()
        return bias.grad.numpy()
    np.testing.assert_allclose(slopes("float32"), slopes("float64"), rtol=1e-4)
    infinite = slopes("float32", float("inf")).reshape([4, 20])
    assert np.isinf(infinite[[0, 2, 3]]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_no_bit(kind):
    results = [trained(kind, 160, batch=33, steps=30, threads=n) for n in (1, 2, 7)]
    for other in results[1:]:
        assert all((a == b).all() for a, b in zip(results[0], other))
