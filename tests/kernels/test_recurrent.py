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


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("hidden", [1, 16, 33, 150])
@pytest.mark.parametrize("kind", KINDS)
def test_few_sequences(kind, hidden, batch):
    got = trained(kind, hidden, batch=batch)
    for one, want in zip(got, trained(kind, hidden, "float64", batch=batch)):
        np.testing.assert_allclose(one, want, rtol=0, atol=4e-6 * max(1, np.abs(want).max()))
    assert all((a == b).all() for a, b in zip(got, trained(kind, hidden, batch=batch, threads=1)))


class Network(nn.Layer):
    def __init__(self, kind, hidden):
        super().__init__()
        self.cells = KINDS[kind](9, hidden, num_layers=2, direction="bidirect")

    def forward(self, x):
        return self.cells(x)[0]


def network(kind, hidden, dtype):
    paddle.set_default_dtype(dtype)
    rng = np.random.RandomState(hidden)
    net = Network(kind, hidden)
    for p in net.parameters():
        p.set_value((rng.randn(*p.shape) * hidden ** -0.5).astype(dtype))
    net.eval()
    return net, rng.randn(2, 6, 9).astype(dtype)


@pytest.mark.parametrize("deferred", [1, 1 << 30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_inference_keeps_packed_weights(kind, dtype, deferred, tmp_path):
    """The same bits as eagerly, run after run and in a clone; whoever asks for the weights afterwards gets them."""
    net, x = network(kind, 37, dtype)
    want = net(paddle.to_tensor(x)).numpy()
    prefix = str(tmp_path / "net")
    paddle.jit.save(net, prefix, input_spec=[paddle.static.InputSpec([None, None, 9], dtype)])
    paddle.set_flags({"FLAGS_deferred_bytes": deferred})
    try:
        predictor = paddle.inference.create_predictor(paddle.inference.Config(prefix + ".pdmodel", prefix + ".pdiparams"))
        for runner in (predictor, predictor, predictor.clone(), predictor):
            np.testing.assert_array_equal(runner.run([paddle.to_tensor(x)])[0].numpy(), want)
        loaded = paddle.jit.load(prefix)
        np.testing.assert_array_equal(loaded(paddle.to_tensor(x)).numpy(), want)
    finally:
        paddle.set_flags({"FLAGS_deferred_bytes": 1 << 16})
    kept = [v.numpy() for v in loaded.state_dict().values()]
    for given in (p.numpy() for p in net.parameters()):
        assert any(v.shape == given.shape and (v == given).all() for v in kept)


@pytest.mark.parametrize("kind", KINDS)
def test_inference_notices_changed_weights(kind):
    net, x = network(kind, 21, "float32")
    compiled = paddle.jit.to_static(net)
    with paddle.no_grad():
        for scale in (1.0, 0.5, 2.0):
            for p in net.parameters():
                p.set_value(p.numpy() * scale)
            eager, _ = net.cells(paddle.to_tensor(x))
            np.testing.assert_array_equal(compiled(paddle.to_tensor(x)).numpy(), eager.numpy())
