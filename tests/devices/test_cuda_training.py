"""Training on gpu:0 (emulated, unless PROA_GPU says that there is one): optimizers, loss scaling and mixed precision follow
the CPU, and a steady step neither waits for the device nor takes memory from its driver."""
import os
import subprocess
import sys

import numpy as np
import pytest

import conftest
import proa as paddle
import test_devices
from proa import _core

STEPS = 8


pytestmark = pytest.mark.usefixtures("gpu")


def counters():
    return [_core.device_property("gpu:0", name) for name in ("waits", "driver_allocations")]


class Net(paddle.nn.Layer):
    """Linear layers and a formula: what every optimizer is tried on."""

    def __init__(self, drop=0.0):
        super().__init__()
        self.first, self.last = paddle.nn.Linear(12, 20), paddle.nn.Linear(20, 4)
        self.drop = paddle.nn.Dropout(drop)

    def forward(self, x):
        return self.last(self.drop(paddle.tanh(self.first(x))))


def batches():
    rng = np.random.RandomState(3)
    return [(rng.standard_normal((16, 12)).astype("float32"), rng.standard_normal((16, 4)).astype("float32"))
            for _ in range(STEPS)]


def train(device, make, level=None, dtype="float16", poison=None, drop=0.0):
    """Losses, final parameters, and what a step of the second half counted."""
    paddle.set_device(device)
    paddle.seed(5)
    net = Net(drop)
    for i, p in enumerate(net.parameters()):
        p.set_value(np.random.RandomState(i).standard_normal(p.shape).astype("float32") * 0.3)
    opt = make(net.parameters())
    if level == "O2":
        net, opt = paddle.amp.decorate(net, opt, level="O2", dtype=dtype, master_weight=True)
    scaler = paddle.amp.GradScaler(init_loss_scaling=1024.0, incr_every_n_steps=3) if level and dtype == "float16" else None
    data = [(paddle.to_tensor(x), paddle.to_tensor(y)) for x, y in batches()]
    losses, before = [], None
    for i, (x, y) in enumerate(data):
        if i == STEPS // 2:
            before = counters()
        if i == poison:
            y = y * float("inf")
        with paddle.amp.auto_cast(enable=bool(level), level=level or "O1", dtype=dtype):
            loss = ((net(x).astype("float32") - y) ** 2).mean()
        if scaler:
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        else:
            loss.backward()
            opt.step()
        opt.clear_grad(set_to_zero=False)
        losses.append(loss)
    counted = [b - a for a, b in zip(before, counters())] if device != "cpu" else None
    values = [p.astype("float32").numpy() for p in net.parameters()]
    state = scaler.state_dict() if scaler else None
    return [float(x) for x in losses], values, counted, state


def both(make, tolerance=1e-4, **options):
    want, got = train("cpu", make, **options), train("gpu:0", make, **options)
    finite = [i for i in range(STEPS) if i != options.get("poison")]
    np.testing.assert_allclose([got[0][i] for i in finite], [want[0][i] for i in finite], rtol=tolerance, atol=tolerance)
    for a, b in zip(got[1], want[1]):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    assert got[2] == [0, 0], f"a steady step waited {got[2][0]} times and took memory from the driver {got[2][1]} times"
    return want, got


CLIP = paddle.nn.ClipGradByGlobalNorm(0.5)
OPTIMIZERS = {
    "sgd": lambda p: paddle.optimizer.SGD(0.05, parameters=p, weight_decay=1e-3),
    "momentum": lambda p: paddle.optimizer.Momentum(0.05, 0.9, parameters=p, use_nesterov=True, grad_clip=CLIP),
    "adam": lambda p: paddle.optimizer.Adam(0.01, parameters=p, grad_clip=CLIP),
    "adamw": lambda p: paddle.optimizer.AdamW(paddle.optimizer.lr.StepDecay(0.01, 2), parameters=p),
    "adamax": lambda p: paddle.optimizer.Adamax(0.01, parameters=p),
    "adagrad": lambda p: paddle.optimizer.Adagrad(0.01, parameters=p),
    "adadelta": lambda p: paddle.optimizer.Adadelta(0.5, parameters=p),
    "rmsprop": lambda p: paddle.optimizer.RMSProp(0.01, parameters=p, momentum=0.9, centered=True),
    "lamb": lambda p: paddle.optimizer.Lamb(0.01, parameters=p),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_follows_the_cpu(name):
    both(OPTIMIZERS[name])


def test_dropout_draws_the_same_masks():
    both(OPTIMIZERS["adam"], drop=0.3)


def half_adam(p):
    return paddle.optimizer.Adam(0.01, parameters=p, multi_precision=True)


@pytest.mark.parametrize("level, dtype", [("O1", "bfloat16"), ("O2", "bfloat16")])
def test_bfloat16(level, dtype):
    both(half_adam, tolerance=5e-2, level=level, dtype=dtype)


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("make", [half_adam, OPTIMIZERS["momentum"]], ids=["adam", "momentum"])
def test_float16_with_scaler(level, make):
    """The CPU's scaler is off (float16 has no effect there), so losses are held against float32's."""
    want, got = train("cpu", make), train("gpu:0", make, level=level)
    np.testing.assert_allclose(got[0], want[0], rtol=5e-2, atol=5e-2)
    assert got[2] == [0, 0]
    assert float(got[3]["scale"][0]) == 4096.0 and got[3]["incr_count"] == STEPS % 3


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "lamb"])
def test_infinite_gradients_change_nothing(name):
    """The step is left out and the scale halved, by the device alone."""
    paddle.set_device("gpu:0")
    p = paddle.create_parameter([3], "float32")
    p.set_value(np.ones(3, "float32"))
    opt, scaler = OPTIMIZERS[name]([p]), paddle.amp.GradScaler(init_loss_scaling=8.0)
    for factor, scale in ((1.0, 8.0), (float("inf"), 4.0)):
        before = p.numpy()
        with paddle.amp.auto_cast(dtype="float16"):
            loss = (p * factor).sum()
        scaler.scale(loss).backward()
        waits = counters()[0]
        scaler.step(opt)
        scaler.update()
        assert counters()[0] == waits
        opt.clear_grad()
        assert (p.numpy() == before).all() == (factor != 1.0)
        assert float(scaler.state_dict()["scale"][0]) == scale


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", ["sgd_step", "adam_step", "lamb_step"])
def test_sparse_gradients(name, lazy):
    """Rows given twice are summed; rows that are not given move as the CPU moves them."""
    def step(device):
        _core.set_device(device)
        on = lambda a: _core.to_device(_core.from_numpy(np.asarray(a, "float32")), device)
        rng = np.random.RandomState(0)
        param, m, v = (on(np.abs(rng.standard_normal((6, 5)))) for _ in range(3))
        index = _core.from_numpy(np.array([4, 1, 4]))
        grad = _core.rows_new(index, on(rng.standard_normal((3, 5))), 6)
        rate, one, two = on([0.1]), on([0.9]), on([0.999])
        if name == "sgd_step":
            _core.sgd_step([param], [grad], rate)
        elif name == "adam_step":
            _core.adam_step([param], [grad], rate, [m], [v], [one], [two], lazy_mode=lazy)
        else:
            _core.lamb_step([param], [grad], rate, [m], [v], [one], [two])
        return [t.numpy() for t in (param, m, v, one, two)]
    for a, b in zip(step("gpu:0"), step("cpu")):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("draw", ["uniform", "normal", "randint", "randperm", "bernoulli", "multinomial"])
def test_random_numbers_are_the_cpus(draw):
    def make(device):
        paddle.set_device(device)
        paddle.seed(11)
        weights = paddle.to_tensor(np.random.RandomState(1).rand(3, 700).astype("float32"))
        return {"uniform": lambda: paddle.uniform([1001], min=-0.3, max=0.7), "normal": lambda: paddle.randn([1001]),
                "randint": lambda: paddle.randint(-5, 1000, [1001]), "randperm": lambda: paddle.randperm(777),
                "bernoulli": lambda: paddle.bernoulli(weights),
                "multinomial": lambda: paddle.concat([paddle.multinomial(weights, 50),
                                                      paddle.multinomial(weights, 50, replacement=True)])}[draw]().numpy()
    got, want = make("gpu:0"), make("cpu")
    if draw == "normal":
        np.testing.assert_array_max_ulp(got, want, 2)
    else:
        np.testing.assert_array_equal(got, want)


def chain(x, y):
    return [_core.matmul(_core.tanh(_core.matmul(x, y)), y)]


def run_often(fn, times=6):
    """The results of runs of a captured program, and how many of them were replays of a recording."""
    _core.set_device("gpu:0")
    rng = np.random.RandomState(2)
    given = [_core.to_device(_core.from_numpy(rng.standard_normal((9, 9)).astype("float32")), "gpu:0") for _ in range(2)]
    program = _core.capture(fn, [(f"x{i}", [9, 9], given[0].dtype) for i in range(2)])
    before, results = _core.device_property("gpu:0", "replays"), []
    for i in range(times):
        results.append(program.run(given)[0].numpy())
    return results, _core.device_property("gpu:0", "replays") - before


def test_repeated_programs_are_recorded():
    results, replays = run_often(chain)
    assert replays >= 4, "the first runs choose kernels, the others are one launch each"
    _core.set_device("cpu")
    for r in results[1:]:
        np.testing.assert_array_equal(r, results[0])


def test_recordings_follow_new_data():
    """A replay reads its inputs anew: only addresses are part of it."""
    _core.set_device("gpu:0")
    x = _core.to_device(_core.from_numpy(np.ones((4, 4), "float32")), "gpu:0")
    program = _core.capture(lambda a, b: chain(a, b), [("x0", [4, 4], x.dtype), ("x1", [4, 4], x.dtype)])
    for i in range(5):
        x.set_value(np.full((4, 4), 0.1 * i, "float32"))
        want = np.tanh(0.04 * i * i) * 0.4 * i
        np.testing.assert_allclose(program.run([x, x])[0].numpy(), np.full((4, 4), want), rtol=1e-5, atol=1e-6)


def same_draws(fn, rtol=0.0):
    """Replays of a program that draws: each draws anew, and what the CPU's eager runs draw one after the other."""
    _core.seed(3)
    results, replays = run_often(fn)
    assert replays >= 4
    assert all((a != b).any() for i, a in enumerate(results) for b in results[:i])
    state = _core.get_rng_state() if hasattr(_core, "get_rng_state") else None
    _core.set_device("cpu")
    _core.seed(3)
    rng = np.random.RandomState(2)
    x, y = (_core.from_numpy(rng.standard_normal((9, 9)).astype("float32")) for _ in range(2))
    for r in results:
        np.testing.assert_allclose(fn(x, y)[0].numpy(), r, rtol=rtol or 1e-5, atol=1e-6)
    assert state is None or state == _core.get_rng_state()


def test_replays_draw_new_numbers():
    same_draws(lambda x, y: [_core.dropout(_core.matmul(x, y), p=0.5)[0]])
    same_draws(lambda x, y: [_core.add(_core.uniform([9, 9], "float32"), _core.multiply(x, _core.bernoulli(_core.sigmoid(y))))])
    same_draws(lambda x, y: [_core.add(_core.gaussian([9, 9]), _core.dropout(_core.dropout(_core.tanh(x), p=0.3)[0], p=0.4)[0])])


def test_attention_is_recorded():
    def attend(drop):
        def fn(x, y):
            q, k = (_core.reshape(t, [1, 9, 1, 9]) for t in (x, y))
            return [_core.scaled_dot_product_attention(q, k, k, None, dropout_p=drop)[0]]
        return lambda x, y: fn(_core.tanh(x), y)
    results, replays = run_often(attend(0.0))
    assert replays >= 4 and all((r == results[0]).all() for r in results)
    same_draws(attend(0.5))


def test_what_the_host_shuffles_is_not_recorded():
    results, replays = run_often(lambda x, y: [_core.index_select(_core.tanh(x), _core.randperm(9))])
    assert replays == 0 and any((r != results[0]).any() for r in results[1:])


def test_training_of_a_compiled_function_is_recorded():
    """to_static on a device: forward and backward are replayed, and follow the CPU."""
    def losses(device):
        paddle.set_device(device)
        paddle.seed(5)
        net = Net()
        for i, p in enumerate(net.parameters()):
            p.set_value(np.random.RandomState(i).standard_normal(p.shape).astype("float32") * 0.3)
        opt, fast = OPTIMIZERS["adam"](net.parameters()), paddle.jit.to_static(net)
        x, y = (paddle.to_tensor(a) for a in batches()[0])
        out = []
        for _ in range(STEPS):
            loss = ((fast(x) - y) ** 2).mean()
            loss.backward()
            opt.step()
            opt.clear_grad()
            out.append(loss)
        return [float(v) for v in out]
    want, before = losses("cpu"), _core.device_property("gpu:0", "replays")
    np.testing.assert_allclose(losses("gpu:0"), want, rtol=1e-4)
    assert _core.device_property("gpu:0", "replays") > before


def bench_gpu(plugin, *words, **flags):
    env = {**os.environ, "PROA_BUILD": str(conftest.BUILD), "FLAGS_device_plugins": str(plugin), **flags}
    return subprocess.run([sys.executable, str(conftest.ROOT / "benchmarks/gpu.py"), *words], env=env, text=True,
                          capture_output=True)


def test_bench_gpu_says_why_it_measures_nothing():
    done = bench_gpu("/nowhere/libproa_cuda.so")
    assert done.returncode == 1 and "nothing was measured" in done.stderr


@pytest.mark.skipif(bool(os.environ.get("PROA_GPU")), reason="make bench-gpu itself runs there")
@pytest.mark.parametrize("ways,only", [("proa", "product"), ("proa", "ResNet-50 inference"), ("proa", "GPT-2 124M inference"),
                                       ("proa,proa+compile", "ResNet-50 exported"), ("proa,proa+compile", "BERT-base exported"),
                                       ("proa,proa+compile", "ResNet-50 step"), ("proa", "GPT-2 124M step")])
def test_bench_gpu_runs(ways, only):
    """Small and without PyTorch: nothing but that is left out."""
    done = bench_gpu(test_devices.plugin_of("gpu:0"), "--tiny", "--ways", ways, "--only", only)
    assert done.returncode == 0, done.stderr
    assert "Emulated device" in done.stdout and only in done.stdout and "goal: " in done.stdout
    assert "not measured:" not in done.stdout, done.stdout
    if " step" in only:
        assert "no allocations in a steady step: yes" in done.stdout, done.stdout


@pytest.mark.skipif(bool(os.environ.get("PROA_GPU")), reason="make bench-gpu itself runs there")
@pytest.mark.parametrize("only", ["GPT-2 124M step", "BERT-base step"])
def test_bench_gpu_runs_compiled_transformers(only):
    """Without the emulator's compiler, which would take minutes for their chains: these run op by op."""
    done = bench_gpu(test_devices.plugin_of("gpu:0"), "--tiny", "--ways", "proa+compile", "--only", only,
                     PROA_EMULATE_NO_COMPILER="1")
    assert done.returncode == 0, done.stderr
    assert "not measured:" not in done.stdout and only in done.stdout, done.stdout


@pytest.mark.skipif(bool(os.environ.get("PROA_GPU")), reason="make bench-gpu itself runs there")
def test_bench_gpu_runs_its_kernels():
    done = bench_gpu(test_devices.plugin_of("gpu:0"), "--tiny", "--ways", "proa,torch", "--only", "bf16")
    assert done.returncode == 0, done.stderr
    assert "Emulated device" in done.stdout and "add, bf16" in done.stdout and "goal: " in done.stdout
    assert "not measured: add, bf16, proa" not in done.stdout  # whether there is a PyTorch or not
