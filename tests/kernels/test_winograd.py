"""3×3 convolutions by F(2×2, 3×3), in all three directions: they agree with float64 as well as direct ones do,
FLAGS_winograd=0 turns them off, and no bit depends on the number of threads."""
import numpy as np
import pytest

import proa as paddle
import proa.nn.functional as F


@pytest.fixture(autouse=True)
def flag():
    yield
    paddle.set_flags({"FLAGS_winograd": 1, "FLAGS_num_threads": 0})


def step(batch, inputs, outputs, height, width, padding, biased, dtype="float32", blocked=False):
    """The result and the gradients of one convolution; blocked: of an input that a convolution made."""
    rng = np.random.RandomState(5)

    def tensor(*shape, scale=1.0):
        return paddle.to_tensor((rng.randn(*shape) * scale).astype(dtype), stop_gradient=False)
    x, w = tensor(batch, inputs, height, width), tensor(outputs, inputs, 3, 3, scale=0.3 / inputs ** 0.5)
    b = tensor(outputs) if biased else None
    h = F.conv2d(x, paddle.eye(inputs, dtype=dtype).reshape([inputs, inputs, 1, 1])) if blocked else x
    y = F.conv2d(h, w, b, padding=padding)
    y.backward(tensor(*y.shape))
    return [t.numpy() for t in (y, x.grad, w.grad) + ((b.grad,) if biased else ())]


def taken():
    """True where this machine has the kernels (AVX2), and FLAGS_cpu_level leaves them."""
    on, off = [], []
    for results, value in ((on, 1), (off, 0)):
        paddle.set_flags({"FLAGS_winograd": value})
        results += step(4, 32, 32, 8, 8, 1, False)
    paddle.set_flags({"FLAGS_winograd": 1})
    return [bool((a != b).any()) for a, b in zip(on, off)]


CASES = [(4, 32, 32, 8, 8, 1, False), (1, 32, 48, 16, 16, 1, True), (3, 48, 80, 13, 17, [2, 0], True),
         (4, 32, 64, 16, 15, [0, 1, 2, 1], False), (2, 64, 96, 23, 9, 0, True), (9, 32, 32, 4, 16, 1, False),
         (9, 272, 48, 5, 6, 2, True), (3, 24, 40, 11, 14, 1, True), (4, 16, 16, 16, 9, 1, False), (2, 528, 32, 12, 12, 1, False), (300, 32, 64, 4, 4, 1, False)]


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "x".join(map(str, c[:5])))
def test_as_exact_as_direct(case, blocked):
    expected = step(*case, dtype="float64")
    fast = step(*case, blocked=blocked)
    paddle.set_flags({"FLAGS_winograd": 0})
    direct = step(*case, blocked=blocked)
    for f, d, e in zip(fast, direct, expected):
        error, other = (np.abs(t - e).max() / np.abs(e).max() for t in (f, d))
        assert error <= max(2e-6, other)


def test_it_runs_and_the_flag_turns_it_off():
    directions = taken()
    assert all(directions) or not any(directions)
    with open("/proc/cpuinfo") as info:
        has = " avx2" in info.read() and int(paddle.get_flags("FLAGS_cpu_level")["FLAGS_cpu_level"]) > 0
    assert all(directions) or not has


def test_threads_change_no_bit():
    results = []
    for threads in (1, 2, 3, 7):
        paddle.set_flags({"FLAGS_num_threads": threads})
        results.append(step(6, 96, 320, 10, 11, 1, False))
    paddle.set_flags({"FLAGS_num_threads": 0})
    held = 3 if all(taken()) else 2  # elsewhere filters' gradients are oneDNN's, which sums them by thread
    for other in results[1:]:
        for a, b in zip(results[0][:held], other[:held]):
            assert (a == b).all()


def test_small_maps_stay_direct():
    """Winograd's tiles would be mostly padding: the direct way multiplies fewer pairs of pixels."""
    for side in (1, 2, 3):
        fast = step(70, 32, 32, side, side, 1, False)
        paddle.set_flags({"FLAGS_winograd": 0})
        for a, b in zip(fast, step(70, 32, 32, side, side, 1, False)):
            assert (a == b).all()
        paddle.set_flags({"FLAGS_winograd": 1})


def test_second_gradients():
    def once(dtype):
        rng = np.random.RandomState(2)
        x = paddle.to_tensor(rng.randn(4, 32, 8, 8).astype(dtype), stop_gradient=False)
        w = paddle.to_tensor((rng.randn(32, 32, 3, 3) * 0.05).astype(dtype), stop_gradient=False)
        y = F.conv2d(x, w, padding=1)
        gx, gw = paddle.grad((y * y * y).sum(), [x, w], create_graph=True)
        (gx * gx).mean().backward(retain_graph=True)
        (gw * gw).mean().backward()
        return x.grad.numpy(), w.grad.numpy()
    for a, b in zip(once("float32"), once("float64")):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(b).max())


def test_a_parameter_that_steps():
    """The filter lies as its gradient is made from the first step on, and eager and compiled steps agree."""
    def train(compiled):
        paddle.seed(1)
        net = paddle.nn.Sequential(paddle.nn.Conv2D(3, 32, 3, padding=1), paddle.nn.ReLU(),
                                   paddle.nn.Conv2D(32, 48, 3, padding=1), paddle.nn.BatchNorm2D(48))
        fn = paddle.jit.to_static(net) if compiled else net
        opt = paddle.optimizer.Momentum(0.05, parameters=net.parameters())
        x = paddle.to_tensor(np.random.RandomState(0).randn(4, 3, 9, 8).astype("float32"))
        losses = []
        for _ in range(4):
            loss = (fn(x) ** 2).mean() + fn(x).abs().mean()
            loss.backward()
            opt.step()
            opt.clear_grad()
            losses.append(float(loss))
        return losses + [net[2].weight.numpy()]
    eager, compiled = train(False), train(True)
    paddle.set_flags({"FLAGS_winograd": 0})
    direct = train(False)
    for a, b, c in zip(eager, compiled, direct):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(a, c, rtol=5e-5, atol=1e-5)


def test_exported_convolutions_obey_the_flag(tmp_path):
    net = paddle.nn.Sequential(paddle.nn.Conv2D(32, 32, 3, padding=1, data_format="NHWC"), paddle.nn.ReLU())
    net.eval()
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[paddle.static.InputSpec([1, 24, 24, 32], "float32")])
    x = paddle.to_tensor(np.random.RandomState(1).randn(1, 24, 24, 32).astype("float32"))
    results = []
    for value in (1, 0, 1):
        paddle.set_flags({"FLAGS_winograd": value})
        config = paddle.inference.Config(str(tmp_path / "net.pdmodel"), str(tmp_path / "net.pdiparams"))
        results.append(paddle.inference.create_predictor(config).run([x])[0].numpy())
    assert (results[0] == results[2]).all() and (results[0] != results[1]).any()
    np.testing.assert_allclose(results[0], results[1], rtol=0, atol=2e-6 * np.abs(results[1]).max())
