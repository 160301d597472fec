"""Allocations that fail, seen from Python: training, programs, files and predictors end in MemoryError or with the right
answer, and work afterwards. tests/c/test_allocation_failure.c has every allocation of a step in C."""
import ctypes
import io
import os
import pathlib
import random
import threading

import numpy as np
import pytest

import proa as paddle
from conftest import PACKAGE

F, nn, spec = paddle.nn.functional, paddle.nn, paddle.static.InputSpec
fail_after = ctypes.CDLL(str(pathlib.Path(PACKAGE).parent / "libproa.so")).proa_memory_fail_after
fail_after.restype, fail_after.argtypes = ctypes.c_int64, [ctypes.c_int64]
TRIES = int(os.environ.get("PROA_FAILED_TRIES", 10))  # allocations of a scenario that fail


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


# ---- training steps ----------------------------------------------------------------------


def stepping(make_loss, optimizer):
    def step():
        loss = make_loss()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss
    return step


def training(folder):
    net, x, y = network(), images(), paddle.to_tensor([1, 3])
    adam = paddle.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
    return stepping(lambda: F.cross_entropy(net(x), y), adam)


def recurrent(folder):
    paddle.seed(6)
    net = nn.LayerList([nn.Embedding(20, 6, sparse=True), nn.LSTM(6, 8, 2, direction="bidirect"), nn.GRU(16, 5), nn.Linear(5, 3)])
    words, lengths = paddle.to_tensor(np.random.RandomState(2).randint(0, 20, (3, 5))), paddle.to_tensor([5, 2, 4])

    def loss():
        states, _ = net[1](net[0](words), sequence_length=lengths)
        return F.cross_entropy(net[3](net[2](states)[1][0]), paddle.to_tensor([0, 2, 1]))
    return stepping(loss, paddle.optimizer.Adam(0.01, parameters=net.parameters(), lazy_mode=True))


def transformer(folder):
    paddle.seed(7)
    net = nn.Transformer(8, 2, 1, 1, 16, dropout=0.1)
    rng = np.random.RandomState(3)
    source, target = (paddle.to_tensor(rng.rand(2, n, 8).astype("float32")) for n in (5, 4))
    mask = net.generate_square_subsequent_mask(4)
    decay = paddle.regularizer.L2Decay(0.01)
    return stepping(lambda: (net(source, target, tgt_mask=mask) ** 2).mean(),
                    paddle.optimizer.Momentum(0.1, parameters=net.parameters(), weight_decay=decay))


def autocast(folder):
    net, x, y = network(), images(), paddle.to_tensor([1, 3])

    def loss():
        with paddle.amp.auto_cast(dtype="bfloat16"):
            return F.cross_entropy(net(x), y)
    return stepping(loss, paddle.optimizer.Lamb(0.01, parameters=net.parameters()))


def masters(folder):
    """Parameters of half precision with float32 masters."""
    net, x, y = network(), images(), paddle.to_tensor([1, 3])
    net, adam = paddle.amp.decorate(net, paddle.optimizer.AdamW(0.01, parameters=net.parameters()), level="O2", dtype="bfloat16")

    def loss():
        with paddle.amp.auto_cast(level="O2", dtype="bfloat16"):
            return F.cross_entropy(net(x), y).astype("float32")
    return stepping(loss, adam)


def loops(x, w):
    i, y = paddle.zeros([1], "int64"), x * w
    while i < 3:
        y = y * w if y.sum() > 2 else y + w
        i = i + 1
    return y


def compiled(folder):
    """Branches and loops, with their gradients."""
    w = paddle.create_parameter([4], "float32", default_initializer=nn.initializer.Constant(0.5))
    x = paddle.to_tensor(np.linspace(0, 1, 8, dtype="float32").reshape(2, 4))
    function = paddle.jit.to_static(loops)
    return stepping(lambda: function(x, w).mean(), paddle.optimizer.SGD(0.1, parameters=[w]))


def penalty(folder):
    """Gradients of gradients, and recomputation."""
    paddle.seed(8)
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    x = paddle.to_tensor(np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4), stop_gradient=False)

    def loss():
        slope, = paddle.grad([net(x).sum()], [x], create_graph=True)
        again = paddle.distributed.fleet.utils.recompute(net, x)
        return (slope ** 2).sum() + again.mean()
    return stepping(loss, paddle.optimizer.RMSProp(0.01, parameters=net.parameters()))


# ---- calls with one answer ---------------------------------------------------------------


def arrays(folder):
    x = images()

    def call():
        y = x * 1
        y[1, ::2] = 3
        y[y > 2] = 0
        y[:, [0, 1]] = y[:, [1, 0]]
        return [y.numpy(), y[y > 1].numpy(), paddle.to_tensor(y.numpy()), np.asarray(y[0]), paddle.linalg.svd(y[0, 0])[1], y.tolist()]
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


def clones(folder):
    """Predictors of a pool, on threads of their own."""
    net, x = network(), images().numpy()
    net.eval()
    paddle.jit.save(net, f"{folder}/p", input_spec=[spec([None, 3, None, None], "float32", "x")])

    def call():
        pool = paddle.inference.PredictorPool(paddle.inference.Config(f"{folder}/p.pdmodel", f"{folder}/p.pdiparams"), 3)
        answers, failures = [None] * 3, []

        def run(i):
            try:
                answers[i] = pool.retrive(i).run([paddle.to_tensor(x[:1 + i % 2])])[0].numpy()
            except Exception as error:  # raised where the test waits
                failures.append(error)
        threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return answers
    return call


def in_program(build, feed):
    """Two runs of a program that `build` makes, in static mode."""
    def call():
        static, main, startup = paddle.static, paddle.static.Program(), paddle.static.Program()
        paddle.enable_static()
        try:
            with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
                paddle.seed(1)
                fetched = build(static)
                executor = static.Executor()
                executor.run(startup)
                return [executor.run(main, feed=feed, fetch_list=fetched) for _ in range(2)]
        finally:
            paddle.disable_static()
    return call


def program(folder):
    def build(static):
        x, y = static.data("x", [None, 6]), static.data("y", [None, 1], "int64")
        loss = F.cross_entropy(static.nn.fc(F.relu(static.nn.batch_norm(static.nn.fc(x, 8))), 3), y)
        paddle.optimizer.Adam(0.1).minimize(loss)
        return [loss]
    return in_program(build, {"x": np.ones((4, 6), "float32"), "y": np.zeros((4, 1), "int64")})


def branching(folder):
    def build(static):
        x = static.data("x", [None, 6])
        h = static.nn.fc(x, 4)
        chosen = static.nn.cond(h.sum() > 0, lambda: paddle.tanh(h), lambda: h * 3)
        loss = chosen.mean()
        paddle.optimizer.SGD(0.1).minimize(loss)
        steps, last = static.nn.while_loop(lambda i, v: i < 3, lambda i, v: [i + 1, paddle.concat([v, v])],
                                           [paddle.zeros([1], "int64"), x])
        return [loss, steps, last]
    return in_program(build, {"x": np.linspace(-1, 2, 12, dtype="float32").reshape(2, 6)})


def quantize_aware(folder):
    x = images()

    def call():
        with paddle.utils.unique_name.guard():
            net = network()
            aware = paddle.quantization.ImperativeQuantAware(weight_quantize_type="channel_wise_abs_max")
            aware.quantize(net)
            net(x).mean().backward()
            net.eval()
            aware.save_quantized_model(net, f"{folder}/q", input_spec=[spec([None, 3, 12, 12], "float32", "x")])
            return paddle.jit.load(f"{folder}/q")(x)
    return call


def quantize_calibrated(folder):
    net, x = network(), images()
    net.eval()
    paddle.jit.save(net, f"{folder}/f", input_spec=[spec([None, 3, 12, 12], "float32", "x")])

    def call():
        paddle.enable_static()
        try:
            tool = paddle.static.quantization.PostTrainingQuantization(
                paddle.static.Executor(), folder, "f.pdmodel", "f.pdiparams", batch_generator=lambda: iter([[x.numpy()]]),
                batch_nums=1, algo="avg")
            tool.quantize()
            tool.save_quantized_model(f"{folder}/q", model_filename="q.pdmodel")
        finally:
            paddle.disable_static()
        made = paddle.inference.create_predictor(paddle.inference.Config(f"{folder}/q/q.pdmodel", f"{folder}/q/q.pdiparams"))
        return made.run([x])
    return call


def agree(got, want):
    return len(got) == len(want) and all(np.array_equal(g, w) for g, w in zip(got, want))


STEPS = [training, recurrent, transformer, autocast, masters, compiled, penalty]
CALLS = [arrays, capture, export, checkpoint, predictor, clones, program, branching, quantize_aware, quantize_calibrated]


@pytest.mark.parametrize("make", STEPS + CALLS, ids=lambda make: make.__name__)
def test_failed_allocations(make, tmp_path):
    steps = make in STEPS
    call = make(tmp_path)
    call() if not steps else None
    fail_after(-1)
    want = values(call())
    count, refused = fail_after(-1), 0
    assert count > 50
    for at in random.Random(make.__name__).sample(range(count), min(count, TRIES)):
        call = make(tmp_path) if steps else call
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
        assert steps or agree(after, want), f"after allocation {at} of {count} failed: another answer"
    assert refused > min(count, TRIES) // 2
