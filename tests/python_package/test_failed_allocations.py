"""Allocations that fail, seen from Python: training, programs, files and predictors end in MemoryError or with the right
answer, and work afterwards. tests/c/test_allocation_failure.c has every allocation of a step in C."""
import ctypes
import io
import pathlib
import random

import numpy as np
import pytest

import proa as paddle
from conftest import PACKAGE

F, nn, spec = paddle.nn.functional, paddle.nn, paddle.static.InputSpec
fail_after = ctypes.CDLL(str(pathlib.Path(PACKAGE).parent / "libproa.so")).proa_memory_fail_after
fail_after.restype, fail_after.argtypes = ctypes.c_int64, [ctypes.c_int64]
TRIES = 25


def values(found):
    if isinstance(found, (list, tuple)):
        return [v for item in found for v in values(item)]
    if isinstance(found, dict):
        return values(list(found.values()))
    return [np.asarray(found.numpy() if isinstance(found, paddle.Tensor) else found)]


def images(n=2):
    return paddle.to_tensor(np.random.RandomState(1).rand(n, 3, 12, 12).astype("float32"))


def network():
    paddle.seed(5)
    return nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.MaxPool2D(2), nn.Conv2D(8, 8, 3, groups=8),
                         nn.Hardswish(), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(8, 4))


def training(folder):
    net, x, y = network(), images(), paddle.to_tensor([1, 3])
    adam = paddle.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))

    def step():
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss
    return step


def arrays(folder):
    x = images()

    def call():
        y = x * 1
        y[1, ::2] = 3
        y[y > 2] = 0
        return [y.numpy(), paddle.to_tensor(y.numpy()), np.asarray(y[0]), paddle.linalg.svd(y[0, 0])[1], y.tolist()]
    return call


def capture(folder):
    net, x = network(), images()
    net.eval()
    return lambda: paddle.jit.to_static(lambda v: (net(v), paddle.topk(net(v), 2)))(x)


def export(folder):
    net, x = network(), images()
    net.eval()

    def call():
        paddle.jit.save(net, f"{folder}/m", input_spec=[spec([None, 3, 12, 12], "float32", "x")])
        return paddle.jit.load(f"{folder}/m")(x)
    return call


def checkpoint(folder):
    state = {**network().state_dict(), "more": {"rates": [1, 2.5], "t": paddle.ones([300, 3], "float16")}}

    def call():
        paddle.save(state, f"{folder}/s.pdparams")
        stream = io.BytesIO()
        paddle.save(paddle.load(f"{folder}/s.pdparams"), stream)
        stream.seek(0)
        return paddle.load(stream, return_numpy=True)
    return call


def predictor(folder):
    net, x = network(), images()
    net.eval()
    paddle.jit.save(net, f"{folder}/p", input_spec=[spec([None, 3, None, None], "float32", "x")])

    def call():
        made = paddle.inference.create_predictor(paddle.inference.Config(f"{folder}/p.pdmodel", f"{folder}/p.pdiparams"))
        made.get_input_handle(made.get_input_names()[0]).copy_from_cpu(x.numpy())
        made.run()
        return [made.get_output_handle(made.get_output_names()[0]).copy_to_cpu(), *made.clone().run([x[:1]])]
    return call


def program(folder):
    def call():
        static, main, startup = paddle.static, paddle.static.Program(), paddle.static.Program()
        paddle.enable_static()
        try:
            with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
                paddle.seed(1)
                x, y = static.data("x", [None, 6]), static.data("y", [None, 1], "int64")
                loss = F.cross_entropy(static.nn.fc(F.relu(static.nn.batch_norm(static.nn.fc(x, 8))), 3), y)
                paddle.optimizer.Adam(0.1).minimize(loss)
                executor = static.Executor()
                executor.run(startup)
                feed = {"x": np.ones((4, 6), "float32"), "y": np.zeros((4, 1), "int64")}
                return [executor.run(main, feed=feed, fetch_list=[loss])[0] for _ in range(2)]
        finally:
            paddle.disable_static()
    return call


def agree(got, want):
    return len(got) == len(want) and all(np.array_equal(g, w) for g, w in zip(got, want))


@pytest.mark.parametrize("make", [training, arrays, capture, export, checkpoint, predictor, program], ids=lambda make: make.__name__)
def test_failed_allocations(make, tmp_path):
    call = make(tmp_path)
    call() if make is not training else None
    fail_after(-1)
    want = values(call())
    count, refused = fail_after(-1), 0
    assert count > 50
    for at in random.Random(make.__name__).sample(range(count), TRIES):
        call = make(tmp_path) if make is training else call
        fail_after(at)
        try:
            got = values(call())
        except MemoryError:
            got = None
            refused += 1
        finally:
            fail_after(-1)
        assert got is None or agree(got, want), f"allocation {at} of {count}: another answer"
        after = values(call())  # of a training step that failed half way the loss may be another one
        assert make is training or agree(after, want), f"after allocation {at} of {count} failed: another answer"
    assert refused > TRIES // 2
