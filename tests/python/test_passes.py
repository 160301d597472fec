"""Optimising passes on whole models: results within 1e-5 of their range of what eager execution gives, and as many
fused ops as the model has places for them, so that a pass that stops matching is seen. What the passes make of each
model is printed and compared with tests/goldens (PROA_GOLDENS=write writes them anew)."""
import collections
import os

import numpy as np
import pytest

import proa as paddle
from conftest import ROOT
from proa import _core, nn

F = nn.functional
GOLDENS = ROOT / "tests/goldens"


def mlp():
    class Mlp(nn.Layer):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(20, 64), nn.Linear(64, 64), nn.Linear(64, 5)

        def forward(self, x):
            h = F.gelu(self.a(x))
            h = F.silu(self.b(h)) * h + 0.5
            return F.softmax(self.c(paddle.tanh(h * 2.0)))
    return Mlp(), (7, 20)


def residual():
    return paddle.vision.models.resnet18(num_classes=10), (2, 3, 32, 32)


def mobile():
    return paddle.vision.models.mobilenet_v2(num_classes=10), (2, 3, 32, 32)


def transformer():
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, activation="gelu")
    return nn.TransformerEncoder(layer, 2), (3, 9, 32)


def recurrent():
    class Lstm(nn.Layer):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(12, 16, direction="bidirect"), nn.Linear(32, 4)

        def forward(self, x):
            return F.sigmoid(self.out(self.lstm(x)[0]))
    return Lstm(), (3, 6, 12)


def lenet():
    return paddle.vision.models.LeNet(), (4, 1, 28, 28)


# model: the fewest ops of each kind that passes are to make of it, and ops that are to be gone
MODELS = {
    "mlp": (mlp, {"linear_fused": 3, "fused_elementwise": 1}, ["gelu", "tanh", "multiply"]),
    "residual": (residual, {"conv2d_fused": 20, "linear_fused": 1}, ["batch_norm", "relu", "add", "conv2d"]),
    "mobile": (mobile, {"conv2d_fused": 52}, ["batch_norm", "relu6", "conv2d", "dropout"]),
    "transformer": (transformer, {"linear_fused": 12}, ["gelu", "dropout", "linear"]),
    "recurrent": (recurrent, {"linear_fused": 1}, ["sigmoid"]),
    "lenet": (lenet, {"conv2d_fused": 2, "linear_fused": 3}, ["relu", "conv2d"]),
}


def made(name):
    paddle.seed(7)
    with paddle.utils.unique_name.guard():
        net, shape = MODELS[name][0]()
    net.eval()
    # Fresh running statistics would make batch norm next to nothing.
    rng = np.random.RandomState(3)
    for key, value in net.state_dict().items():
        if key.endswith("._mean"):
            value.set_value((0.1 * rng.standard_normal(value.shape)).astype("float32"))
        if key.endswith("._variance"):
            value.set_value(rng.uniform(0.5, 1.5, value.shape).astype("float32"))
    x = rng.standard_normal(shape).astype("float32")
    with paddle.no_grad():
        batch = shape[0] if name == "recurrent" else -1  # an LSTM's first states are made for a known batch
        program = _core.capture(lambda t: [net(t)], [("x", [batch, *shape[1:]], "float32")])
    return net, x, program


@pytest.mark.parametrize("name", MODELS)
def test_results(name):
    net, x, program = made(name)
    for rows in (x, x[:1], np.concatenate([x, x]))[:1 if name == "recurrent" else 3]:
        t = paddle.to_tensor(rows)
        with paddle.no_grad():
            want = net(t).numpy()
        plain = _core.Executor(program, passes="").run([t])[0].numpy()
        assert np.array_equal(plain, want)
        for frozen, passes in ((True, None), (True, "-layout"), (False, None), (True, "elementwise")):
            got = _core.Executor(program, frozen=frozen, passes=passes).run([t])[0].numpy()
            assert got.shape == want.shape
            assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max(), (frozen, passes)


@pytest.mark.parametrize("name", MODELS)
def test_fused(name):
    program = made(name)[2]
    program.optimise(frozen=True)
    ops = collections.Counter(op for op, _ in program.ops(0))
    for op, at_least in MODELS[name][1].items():
        assert ops[op] >= at_least, ops
    assert not [op for op in MODELS[name][2] if ops[op]], ops


@pytest.mark.parametrize("name", MODELS)
def test_golden(name):
    program = made(name)[2]
    text = program.text()
    program.optimise(frozen=True)
    text = f"{text}\n---- passes\n{program.text()}"
    path = GOLDENS / f"{name}.txt"
    if os.environ.get("PROA_GOLDENS") == "write":
        path.write_text(text)
    assert text == path.read_text(), "the program has changed: look at it, then PROA_GOLDENS=write"


def test_memory():
    """A frozen model's arena is at most half of what its temporaries sum up to."""
    for name in ("residual", "transformer"):
        _, x, program = made(name)
        executor = _core.Executor(program, frozen=True)
        executor.run([paddle.to_tensor(x)])
        program.optimise(frozen=True)
        batch, total = x.shape[0], 0
        for _, var, persistable, is_input, _, _ in program.vars(0):
            if not persistable and not is_input:
                total += 4 * int(np.prod([batch if d < 0 else d for d in var.shape]))
        assert executor.stats()["arena_bytes"] <= 0.5 * total, (name, executor.stats(), total)


def test_bad_names():
    program = made("mlp")[2]
    with pytest.raises(Exception, match="there is no pass 'magic'"):
        _core.Executor(program, passes="magic")
