"""Static mixed precision: the same losses as eager autocast, to the bit; float16 with a scaled loss trains."""
import numpy as np
import pytest

import proa as paddle
from proa import static

DATA = np.random.default_rng(3).standard_normal((8, 6)).astype("float32")
W1, W2 = (np.random.default_rng(k).standard_normal(s).astype("float32") * 0.4 for k, s in ((4, (6, 8)), (5, (8, 1))))


def model(x, w1, w2):
    return (paddle.matmul(paddle.tanh(paddle.matmul(x, w1)), w2) ** 2).mean()


def eager(dtype, steps):
    w1, w2 = (paddle.to_tensor(w, stop_gradient=False) for w in (W1, W2))
    losses = []
    for _ in range(steps):
        with paddle.amp.auto_cast(dtype=dtype):
            loss = model(paddle.to_tensor(DATA), w1, w2)
        loss.astype("float32").backward()
        losses.append(float(loss.astype("float32")))
        for w in (w1, w2):
            w.set_value(w - 0.1 * w.grad)
            w.clear_grad()
    return losses


def program(decorate, steps, guard=None):
    paddle.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup):
            x = static.data("x", [8, 6])
            w1, w2 = (static.create_parameter(list(w.shape), "float32",
                                              default_initializer=paddle.nn.initializer.Assign(w)) for w in (W1, W2))
            if guard:
                x = paddle.tanh(paddle.matmul(x, paddle.full([6, 6], 0.3)))
                with guard():
                    loss = model(x, w1, w2)
            else:
                loss = model(x, w1, w2)
            opt = decorate(paddle.optimizer.SGD(0.1))
            opt.minimize(loss)
            exe = static.Executor()
            exe.run(startup)
            losses = [float(np.asarray(exe.run(main, {"x": DATA}, [loss])[0])) for _ in range(steps)]
            return losses, [op for op in main.global_block().ops], opt
    finally:
        paddle.disable_static()


def test_bfloat16_as_eagerly():
    losses, ops, _ = program(static.amp.bf16.decorate_bf16, 4)
    assert losses == eager("bfloat16", 4)
    assert sum(op.type == "cast" for op in ops) > 2


def test_float16_scales_the_loss():
    losses, ops, opt = program(lambda o: static.amp.decorate(o, init_loss_scaling=128.0), 6)
    assert losses[-1] < losses[0]
    kinds = [op.type for op in ops]
    assert "check_finite_and_unscale" in kinds and "update_loss_scaling" in kinds
    assert opt.get_loss_scaling() is not None


def test_guard_limits_the_casts():
    def casts(**options):
        _, ops, _ = program(lambda o: static.amp.decorate(o, use_bf16=True, **options), 1, static.amp.fp16_guard)
        return sum(op.type == "cast" for op in ops)
    assert casts(use_fp16_guard=True) < casts(use_fp16_guard=False)


def test_after_minimize_it_is_too_late():
    paddle.enable_static()
    try:
        main = static.Program()
        with static.program_guard(main, static.Program()):
            loss = static.nn.fc(static.data("x", [None, 3]), 1).mean()
            paddle.optimizer.SGD(0.1).minimize(loss)
            with pytest.raises(ValueError, match="before minimize"):
                static.amp.cast_model_to_fp16(main)
    finally:
        paddle.disable_static()
