"""Optimizing passes on whole models: results within 1e-5 of their range of what eager execution gives, and as many
fused ops as the model has places for them, so that a pass that stops matching is seen. What the passes make of each
model is printed and compared with tests/programs/goldens (PROA_GOLDENS=write writes them anew)."""
import collections
import os

import numpy as np
import pytest

import proa as paddle
from conftest import ROOT
from proa import _core, nn

F = nn.functional
GOLDENS = ROOT / "tests/programs/goldens"


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
    program.optimize(frozen=True)
    ops = collections.Counter(op for op, _ in program.ops(0))
    for op, at_least in MODELS[name][1].items():
        assert ops[op] >= at_least, ops
    assert not [op for op in MODELS[name][2] if ops[op]], ops


@pytest.mark.parametrize("name", MODELS)
def test_deferred_weights(name, tmp_path):
    """Passes make the same ops of weights that are not read yet, and runs have the same bits."""
    net, x, _ = made(name)
    batch = x.shape[0] if name == "recurrent" else None
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[paddle.static.InputSpec([batch, *x.shape[1:]], "float32", "x")])
    found = []
    for least in (1, 1 << 30):
        paddle.set_flags({"FLAGS_deferred_bytes": least})
        try:
            config = paddle.inference.Config(str(tmp_path / "net.pdmodel"), str(tmp_path / "net.pdiparams"))
            predictor = paddle.inference.create_predictor(config)
        finally:
            paddle.set_flags({"FLAGS_deferred_bytes": 1 << 16})
        predictor.get_input_handle("x").copy_from_cpu(x)
        predictor.run()
        found.append((predictor._core.ops(), predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("name", MODELS)
def test_golden(name):
    program = made(name)[2]
    text = program.text()
    program.optimize(frozen=True)
    text = f"{text}\n---- passes\n{program.text()}"
    path = GOLDENS / f"{name}.txt"
    if os.environ.get("PROA_GOLDENS") == "write":
        path.write_text(text)
    assert text == path.read_text(), "the program has changed: look at it, then PROA_GOLDENS=write"


def test_memory():
    """A frozen model's arena is at most half of what its temporaries sum up to."""
    for name in ("residual", "mobile", "transformer"):
        _, x, program = made(name)
        executor = _core.Executor(program, frozen=True)
        executor.run([paddle.to_tensor(x)])
        program.optimize(frozen=True)
        batch, total = x.shape[0], 0
        for _, var, persistable, is_input, _, _ in program.vars(0):
            if not persistable and not is_input:
                total += 4 * int(np.prod([batch if d < 0 else d for d in var.shape]))
        assert executor.stats()["arena_bytes"] <= 0.5 * total, (name, executor.stats(), total)


def test_bad_names():
    program = made("mlp")[2]
    with pytest.raises(Exception, match="there is no pass 'magic'"):
        _core.Executor(program, passes="magic")


def random_function(rng):
    """A function of two [n, 6, 4] tensors made of random ops on random earlier values, some written in place."""
    weights = [paddle.to_tensor(rng.standard_normal(shape).astype("float32") * 0.5)
               for shape in ((4, 4), (4,), (6, 4), (1,), (4, 4))]
    plan = [(int(rng.randint(14)), *(float(v) for v in rng.uniform(size=4))) for _ in range(rng.randint(4, 25))]

    def pick(values, at):
        return values[int(at * len(values))]

    def run(x, y):
        values = [x, y]
        for kind, a, b, c, _ in plan:
            u, v = pick(values, a), pick(values, b)
            values.append([
                lambda: u + v, lambda: u * F.sigmoid(v), lambda: paddle.tanh(u - v), lambda: F.relu(u),
                lambda: F.gelu(u), lambda: u * weights[1] + weights[2], lambda: paddle.clip(u, -0.5, 0.8),
                lambda: u.transpose([0, 2, 1]).transpose([0, 2, 1]), lambda: u.reshape([-1, 24]).reshape([-1, 6, 4]),
                lambda: F.linear(u, weights[0] if c < 0.5 else weights[4], weights[1] if c < 0.7 else None),
                lambda: paddle.matmul(u, weights[4]) + v, lambda: F.softmax(u), lambda: u.clone() * weights[3],
                lambda: (u + 0.5).scale_(2.0)][kind]())
        outs = [pick(values, o) for *_, o in plan[:2]] + [values[-1], paddle.mean(values[len(values) // 2])]
        return [o + 0.0 for o in outs]
    return run


@pytest.mark.parametrize("seed", range(int(os.environ.get("PROA_TEST_PROGRAMS", "60"))))
def test_random_programs(seed):
    rng = np.random.RandomState(seed)
    run = random_function(rng)
    spec = [("x", [-1, 6, 4], "float32"), ("y", [-1, 6, 4], "float32")]
    with paddle.no_grad():
        program = _core.capture(lambda x, y: run(x, y), spec)
    executors = {(frozen, passes): _core.Executor(program, frozen=frozen, passes=passes)
                 for frozen in (False, True) for passes in (None, "-epilogue_fusion", "cse,elementwise")}
    for n, m in ((1, 1), (5, 5), (300, 300), (5, 1), (1, 5)):
        t = [paddle.to_tensor(rng.standard_normal((k, 6, 4)).astype("float32")) for k in (n, m)]
        with paddle.no_grad():
            want = [o.numpy() for o in run(*t)]
        for how, executor in executors.items():
            for got, w in zip(executor.run(t), want):
                assert got.numpy().shape == w.shape
                assert np.abs(got.numpy() - w).max() <= 1e-5 * max(np.abs(w).max(), 1e-3), (how, n, m)


@pytest.mark.parametrize("seed", range(int(os.environ.get("PROA_TEST_PROGRAMS", "60"))))
def test_random_gradients(seed):
    """Programs with their backward pass: the same bits, but for products that take over what follows them."""
    rng = np.random.RandomState(seed)
    run = random_function(rng)
    program = _core.capture(lambda x, y: run(x, y), [("x", [-1, 6, 4], "float32"), ("y", [-1, 6, 4], "float32")])
    loss = program.find(program.outputs[-1])
    grads = program.gradients([loss], [program.find("x"), program.find("y")])
    program.set_outputs([loss] + [g for g in grads if g is not None])
    plain, same, every = (_core.Executor(program, passes=passes) for passes in ("", "-epilogue_fusion", None))
    for n in (1, 5, 200):
        t = [paddle.to_tensor(rng.standard_normal((n, 6, 4)).astype("float32")) for _ in range(2)]
        for w, s, e in zip(plain.run(t), same.run(t), every.run(t)):
            assert np.array_equal(w.numpy(), s.numpy())
            assert np.abs(e.numpy() - w.numpy()).max() <= 1e-5 * max(np.abs(w.numpy()).max(), 1e-3)


def random_network(rng):
    """A function of an image [n, 8, h, w] made of random ops on random earlier values of its size."""
    def tensor(*shape):
        return paddle.to_tensor(rng.standard_normal(shape).astype("float32") * 0.3)
    weights = [tensor(8, 8, 3, 3), tensor(8, 1, 3, 3), tensor(8, 8, 1, 1), tensor(8), tensor(8, 16, 1, 1),
               tensor(8, 1, 1)]
    norm = [tensor(8), paddle.to_tensor(rng.uniform(0.5, 1.5, 8).astype("float32")), tensor(8), tensor(8)]
    plan = [(int(rng.randint(13)), float(rng.uniform()), float(rng.uniform())) for _ in range(rng.randint(4, 16))]

    def run(x):
        values = [x]
        for kind, a, b in plan:
            u, v = values[int(a * len(values))], values[int(b * len(values))]
            values.append([
                lambda: F.conv2d(u, weights[0], weights[3], padding=1),
                lambda: F.conv2d(u, weights[1], padding=1, groups=8),
                lambda: F.conv2d(u, weights[2]), lambda: F.batch_norm(u, *norm), lambda: F.relu(u), lambda: u + v,
                lambda: F.hardswish(u), lambda: F.max_pool2d(u, 3, 1, 1), lambda: F.avg_pool2d(u, 3, 1, 1),
                lambda: F.conv2d(paddle.concat([u, v], axis=1), weights[4]), lambda: u * weights[5],
                lambda: u * F.sigmoid(F.conv2d(F.adaptive_avg_pool2d(v, 1), weights[2])),
                lambda: F.softmax(u, axis=1)][kind]())
        return [values[-1], paddle.mean(values[len(values) // 2], axis=[2, 3])]
    return run


@pytest.mark.parametrize("seed", range(int(os.environ.get("PROA_TEST_PROGRAMS", "40"))))
def test_random_networks(seed):
    rng = np.random.RandomState(seed)
    run = random_network(rng)
    with paddle.no_grad():
        program = _core.capture(lambda x: run(x), [("x", [-1, 8, -1, -1], "float32")])
    executors = {(frozen, passes): _core.Executor(program, frozen=frozen, passes=passes)
                 for frozen, passes in ((True, None), (True, "-layout"), (True, "-batch_norm"), (False, None))}
    for shape in ((1, 8, 5, 5), (3, 8, 7, 4)):
        x = paddle.to_tensor(rng.standard_normal(shape).astype("float32"))
        with paddle.no_grad():
            want = [o.numpy() for o in run(x)]
        for how, executor in executors.items():
            for got, w in zip(executor.run([x]), want):
                assert got.numpy().shape == w.shape
                assert np.abs(got.numpy() - w).max() <= 1e-5 * max(np.abs(w).max(), 1e-2), (how, shape)


def pooled(channels, stride):
    class Pooled(nn.Layer):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2D(2, channels, 3, padding=1), nn.Conv2D(channels, 3, 3)

        def forward(self, x):
            return self.b(F.max_pool2d(F.relu(self.a(x)), 3, stride, padding=1))
    return Pooled()


@pytest.mark.parametrize("channels, stride, places", [(6, 2, True), (5, 1, True), (16, 2, False)])
def test_pool_in_training(channels, stride, places, capfd):
    """relu's gradient is taken behind the pooling's, whose places the forward keeps where tensors stay plain: the same
    bits, for values that are not numbers, too."""
    net = pooled(channels, stride)
    x = np.random.RandomState(5).standard_normal((3, 2, 13, 11)).astype("float32")
    x[0, 1, 4, 5], x[1, 0, 2] = np.nan, -8

    def gradients(call):
        t = paddle.to_tensor(x, stop_gradient=False)
        net.clear_gradients()
        (call(t) ** 2).sum().backward()
        return [t.grad.numpy(), *(p.grad.numpy() for p in net.parameters())]
    want = gradients(net)
    before = paddle.get_flags(["FLAGS_passes"])
    try:
        paddle.set_flags({"FLAGS_passes": "max_pool_indices", "FLAGS_dump_passes": True})
        got = gradients(paddle.jit.to_static(net))
    finally:
        paddle.set_flags({**before, "FLAGS_dump_passes": False})
    after = capfd.readouterr().err.split("after max_pool_indices")[1].split("----")[0]
    assert ("max_pool2d_with_index_grad" in after) == places
    assert after.index("relu_grad(") < after.index("max_pool2d_with_index_grad(" if places else "pool2d_grad(")
    for a, b in zip(want, got):
        assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("channels, kernel, padding, window, fits", [
    (6, 3, 1, 2, True), (20, 5, 0, (3, 2), True), (17, 4, 2, (1, 3), True), (6, 3, 1, 3, False)])
def test_convolution_pooled_in_training(channels, kernel, padding, window, fits, capfd):
    """Convolution, relu and pooling over windows side by side are one op, forwards and backwards; over windows that
    overlap they are not."""
    body = nn.Sequential(nn.Conv2D(2, channels, kernel, padding=padding), nn.ReLU(),
                         nn.MaxPool2D(window, None if fits else 2))
    net = nn.Sequential(nn.Conv2D(1, 2, 1), body, nn.Conv2D(channels, 3, 2))
    x = np.random.RandomState(5).standard_normal((37, 1, 13, 11)).astype("float32")

    def gradients(call):
        t = paddle.to_tensor(x, stop_gradient=False)
        net.clear_gradients()
        out = call(t)
        (out ** 2).sum().backward()
        return [out.numpy(), t.grad.numpy(), *(p.grad.numpy() for p in net.parameters())]
    want = gradients(net)
    before = paddle.get_flags(["FLAGS_passes"])
    try:
        paddle.set_flags({"FLAGS_passes": "conv_relu_pool", "FLAGS_dump_passes": True})
        got = gradients(paddle.jit.to_static(net))
    finally:
        paddle.set_flags({**before, "FLAGS_dump_passes": False})
    err = capfd.readouterr().err
    for name in ("conv2d_pooled(", "conv2d_pooled_grad_input(", "conv2d_pooled_grad_filter("):
        assert (name in err) == fits
    for a, b in zip(want, got):
        assert np.abs(a - b).max() <= 1e-5 * np.abs(a).max()


def test_dropout_is_recomputed(capfd):
    """Outputs of dropout, after an activation or not, are no more stored for the backward; the same bits."""
    net = nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.Dropout(0.4), nn.Linear(9, 5), nn.Softmax(), nn.Dropout(0.3),
                        nn.Linear(5, 2))
    x = np.random.RandomState(5).standard_normal((7, 6)).astype("float32")

    def gradients(passes):
        paddle.set_flags({"FLAGS_passes": passes})
        paddle.seed(3)
        net.clear_gradients()
        (paddle.jit.to_static(net.forward)(paddle.to_tensor(x)) ** 2).sum().backward()
        return [p.grad.numpy() for p in net.parameters()]
    before = paddle.get_flags(["FLAGS_passes"])
    try:
        want = gradients("none")
        paddle.set_flags({"FLAGS_dump_passes": True})
        got = gradients("recompute")
    finally:
        paddle.set_flags({**before, "FLAGS_dump_passes": False})
    after = capfd.readouterr().err.split("after recompute")[1].split("----")[0]
    for op, n in {"gelu": 0, "gelu_grad": 0, "gelu_dropout": 1, "gelu_dropout_grad": 1, "dropout_grad": 2}.items():
        assert after.count(f" {op}(") == n, op
    for a, b in zip(want, got):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [7, 512, 5000, 1 << 20])
@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_with_dropout(dtype, n, approximate):
    """Forwards and backwards one pass gives the bits of its parts, in place or not."""
    rng = np.random.RandomState(3)
    x, d = (paddle.to_tensor(rng.standard_normal(n).astype(dtype)) for _ in range(2))
    same = {"p": 0.3, "seed": 5, "fix_seed": True}
    want, mask = _core.dropout(_core.gelu(x, approximate), **same)
    out, drawn = _core.gelu_dropout(x, approximate, **same)
    slope = _core.gelu_grad(x, _core.dropout_grad(mask, d, p=0.3), approximate)
    pairs = [(want, out), (mask, drawn), *zip((slope, want), _core.gelu_dropout_grad(x, mask, d, approximate, p=0.3))]
    program = _core.capture(lambda a, b: [t + 0.0 for t in _core.gelu_dropout_grad(a + 0.0, mask, b + 0.0, approximate, p=0.3)],
                            [("a", [n], dtype), ("b", [n], dtype)])
    pairs += zip((slope, want), _core.Executor(program, passes="").run([x, d]))
    for a, b in pairs:
        assert np.array_equal(a.numpy(), b.numpy())


def test_gradients_lie_over_what_dies():
    """A chain of gradient ops takes the memory of one tensor."""
    rng = np.random.RandomState(3)
    x, d = (paddle.to_tensor(rng.uniform(0.1, 0.9, [64, 64]).astype("float32")) for _ in range(2))
    mask = _core.dropout(x, p=0.4)[1]

    def run(t):
        for op in (_core.gelu_grad, _core.relu_grad, _core.tanh_grad, _core.sigmoid_grad, _core.silu_grad, _core.softmax_grad):
            t = op(x, t)
        return _core.mean(_core.dropout_grad(mask, t, p=0.4))
    executor = _core.Executor(_core.capture(lambda t: [run(t * 2.0)], [("t", [64, 64], "float32")]), passes="")
    assert np.array_equal(executor.run([d])[0].numpy(), run(d * 2.0).numpy())
    assert executor.stats()["arena_bytes"] <= 64 * 64 * 4 + 64


def test_heads_are_merged_once(capfd):
    """A copy that a reshape makes, because the op before it left gaps, serves another reshape, which does not copy again."""
    def run(x):
        merged = paddle.transpose(x, [0, 2, 1, 3]).reshape([2, 5, 12])
        return merged * 2.0, merged.reshape([10, 12]) + 1.0
    program = _core.capture(run, [("x", [2, 3, 5, 4], "float32")])
    program.optimize()
    reads = [line.split("reshape(x=")[1].split(",")[0] for line in program.text().splitlines() if "reshape(x=" in line]
    assert len(reads) == len(set(reads)) == 2, program.text()


@pytest.mark.parametrize("factor", [None, 0.125])
@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (8, 4, 64, 64), (1, 2, 33, 40)])
def test_heads_are_written_merged(shape, factor):
    """A product, perhaps scaled, whose rows then come before the heads is written in that order."""
    def run(x, y):
        product = paddle.matmul(x, y)
        if factor:
            product = product * factor
        return paddle.transpose(product, [0, 2, 1, 3]).reshape([shape[0], shape[2], -1]) + 1.0
    batch, heads, rows, k = shape
    program = _core.capture(lambda x, y: [run(x, y)], [("x", [-1, heads, rows, k], "float32"),
                                                       ("y", [-1, heads, k, 24], "float32")])
    rng = np.random.RandomState(3)
    t = [paddle.to_tensor(rng.standard_normal(s).astype("float32")) for s in (shape, (batch, heads, k, 24))]
    want = run(*t).numpy()
    got = _core.Executor(program, passes="transpose_folding").run(t)[0].numpy()
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()
    program.optimize("transpose_folding")
    ops = [op for op, _ in program.ops(0)]
    assert ops.count("matmul_swapped") == 1 and not {"matmul", "transpose"} & set(ops)


@pytest.mark.parametrize("frozen", [False, True])
def test_copies_that_an_op_overwrites_stay(frozen):
    """An optimizer moves its copy of a power on; what reads the power behind it sees what was fed."""
    def run(power, param):
        first, second = paddle.assign(power), paddle.assign(power)
        state = [paddle.assign(param) for _ in range(3)]
        rate = paddle.full([1], 0.1, "float32")
        _core.adamax_step([state[0]], [param], rate, [state[1]], [state[2]], [first], [], None)
        return power * 0.5, first + 0.0, second + 0.0, state[0] + 0.0

    with paddle.no_grad():
        program = _core.capture(run, [("power", [1], "float32"), ("param", [3], "float32")])
        values = [paddle.to_tensor(np.array(v, "float32")) for v in ([0.5], [1, 2, 3])]
        want = [t.numpy() for t in run(*values)]
    assert want[:3] == [0.25, np.float32(0.45), 0.5]
    for passes in ("", None, "identity,cse"):
        changed = program.clone()
        changed.optimize(passes, frozen)
        for w, got in zip(want, _core.Executor(changed, frozen=frozen, passes="").run(values)):
            np.testing.assert_array_equal(got.numpy(), w)
