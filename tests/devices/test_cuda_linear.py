"""Linear layers' training on gpu:0 (emulated, unless PROA_GPU says that there is one): what the pass `linear` makes of a
program, and what eager backward asks for; losses and gradients are those without them, and the CPU's."""
import collections
import re

import numpy as np
import pytest

import proa as paddle
from proa import _core, nn

pytestmark = pytest.mark.usefixtures("gpu")
MADE = ("linear_gelu", "linear_gelu_grad", "linear_weight_grad")


class Feed(nn.Layer):
    """A transformer's feed-forward block and what is before it, rows in two dims."""

    def __init__(self, wide, approximate, bias):
        super().__init__()
        bias = None if bias else False
        self.a, self.b, self.c = nn.Linear(8, 16), nn.Linear(16, wide, bias_attr=bias), nn.Linear(wide, 16)
        self.approximate = approximate

    def forward(self, x):
        h = paddle.tanh(self.a(x))
        return h + self.c(nn.functional.gelu(self.b(h), approximate=self.approximate))


def trained(device, passes="all", compiled=True, wide=24, approximate=True, bias=True, dtype="float32"):
    """The loss and every gradient of a step, x's too."""
    paddle.set_device(device)
    _core.set_flag("passes", passes)
    try:
        paddle.seed(3)
        net = Feed(wide, approximate, bias).astype(dtype)
        x = paddle.to_tensor(np.random.RandomState(1).standard_normal((2, 5, 8)).astype("float32")).astype(dtype)
        x.stop_gradient = False
        loss = (paddle.jit.to_static(net) if compiled else net)(x).square().mean()
        loss.backward()
        return [t.astype("float32").numpy() for t in (loss, x.grad, *(p.grad for p in net.parameters()))]
    finally:
        _core.set_flag("passes", "all")
        paddle.set_device("cpu")


def dumped(capfd, run):
    """The number of ops of each name that the passes left, forward and backward together."""
    _core.set_flag("dump_passes", "1")
    capfd.readouterr()
    try:
        run()
    finally:
        _core.set_flag("dump_passes", "0")
    seen = collections.Counter()
    for dump in capfd.readouterr().err.split("---- program before passes")[1:]:
        last = dump.split("---- program after ")[-1]
        seen.update(op for op in re.findall(r"\b([a-z_0-9]+)\(", last))
    return seen


def close(got, want, tolerance):
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())


@pytest.mark.parametrize("wide, bias, dtype, tolerance", [
    (24, True, "float32", 1e-5), (24, False, "float32", 1e-5), (21, True, "float32", 1e-5), (24, True, "float64", 1e-12),
    (24, True, "bfloat16", 2e-2), (24, True, "float16", 3e-3)])
def test_gradients(wide, bias, dtype, tolerance):
    """21 columns are not for the library, which wants rows of whole 16 bytes; float64 has no epilogues."""
    options = {"wide": wide, "bias": bias, "dtype": dtype}
    want = trained("cpu", **options)
    for passes, compiled in (("all", True), ("-linear", True), ("all", False)):
        close(trained("gpu:0", passes, compiled, **options), want, tolerance)


@pytest.mark.parametrize("bias", [True, False])
def test_what_the_pass_makes(capfd, bias):
    ops = dumped(capfd, lambda: trained("gpu:0", bias=bias))
    # The sum of rows behind the gelu goes along with its gradient, where there is a bias that wants it.
    assert [ops[op] for op in MADE] == [1, int(bias), 2], ops
    assert not dumped(capfd, lambda: trained("gpu:0", "-linear")).keys() & set(MADE)


def test_where_it_makes_nothing(capfd):
    assert not dumped(capfd, lambda: trained("cpu")).keys() & set(MADE), "the CPU gains nothing"
    ops = dumped(capfd, lambda: trained("gpu:0", approximate=False))
    assert [ops[op] for op in MADE] == [0, 0, 3], "the library has no gelu by erf"


def test_eager_backward_takes_the_sum_along():
    """No kernel of its own sums the bias's gradient; a gradient that is itself differentiated is made of plain ops."""
    paddle.set_device("gpu:0")
    x, d = (paddle.to_tensor(np.random.RandomState(i).standard_normal(s).astype("float32")) for i, s in enumerate([(6, 8), (6, 16)]))
    w, b = paddle.ones([8, 16]), paddle.zeros([16])
    w.stop_gradient = b.stop_gradient = False
    y = nn.functional.linear(x, w, b)
    got = paddle.grad([y], [w, b], [d], retain_graph=True)
    np.testing.assert_allclose(got[0].numpy(), x.numpy().T @ d.numpy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got[1].numpy(), d.numpy().sum(0), rtol=1e-5, atol=1e-5)
    before = _core.device_property("gpu:0", "launches")
    paddle.grad([y], [w, b], [d], retain_graph=True)
    assert _core.device_property("gpu:0", "launches") == before
    twice = paddle.grad([(y * y).sum()], [w, b], create_graph=True)
    second = paddle.grad([twice[1].sum()], [w])[0]
    np.testing.assert_allclose(second.numpy(), 2 * x.numpy().sum(0)[:, None] * np.ones(16), rtol=1e-5, atol=1e-5)
    paddle.set_device("cpu")
