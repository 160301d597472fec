"""Programs as text, compared with tests/programs/goldens: what append_backward, the optimizer, clone(for_test), control flow and
the passes make of small models, so that a change's effect on programs is seen in review. PROA_GOLDENS=write writes them."""
import contextlib
import os

import pytest

import proa as paddle
from conftest import ROOT

static, F = paddle.static, paddle.nn.functional
GOLDENS = ROOT / "tests/programs/goldens"


@contextlib.contextmanager
def building():
    main, startup = static.Program(), static.Program()
    paddle.seed(7)
    paddle.enable_static()
    try:
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            yield main, startup
    finally:
        paddle.disable_static()


def optimized(program):
    copy = program.clone()
    copy.optimize()
    return copy.text()


def training():
    """A classifier with dropout and batch norm, clipped gradients, momentum and a schedule; and its clone for testing."""
    with building() as (main, startup):
        x, y = static.data("x", [None, 6]), static.data("y", [None, 1], "int64")
        h = F.dropout(F.relu(static.nn.batch_norm(static.nn.fc(x, 8))), 0.3)
        loss = F.cross_entropy(static.nn.fc(h, 3), y)
        rate = paddle.optimizer.lr.StepDecay(0.1, 5)
        paddle.optimizer.Momentum(rate, 0.9, weight_decay=1e-3, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0)).minimize(loss)
        main._core.set_outputs([loss])
        return {"startup": startup._core.text(), "main": main._core.text(),
                "for test": main.clone(for_test=True)._core.text(), "passes": optimized(main._core)}


def twice():
    """A gradient of a gradient, and a detached value."""
    with building() as (main, _):
        x = static.data("x", [3, 4])
        x.stop_gradient = False
        y = (paddle.tanh(x) * x.detach()).sum()
        g, = static.gradients([y], [x])
        h, = static.gradients([(g * g).sum()], [x])
        main._core.set_outputs([h])
        return {"main": main._core.text(), "passes": optimized(main._core)}


def control():
    """A loop with a branch in it, converted from Python."""
    def turns(x, n):
        i = paddle.zeros([], "int64")
        while i < n:
            if x.sum() > 0:
                x = x * 0.5
            else:
                x = F.relu(x) + 1.0
            i += 1
        return x, i
    converted = paddle.jit.to_static(turns, full_graph=True, input_spec=[static.InputSpec([None, 2], name="x"),
                                                                         static.InputSpec([], "int64", name="n")])
    with paddle.utils.unique_name.guard(), paddle.no_grad():
        program = converted.concrete_program.core_program
    return {"main": program.text(), "passes": optimized(program)}


def branches():
    """A branch and a loop of a static program, with their gradients."""
    with building() as (main, _):
        x = static.data("x", [2, 3])
        x.stop_gradient = False
        y = static.nn.cond(x.mean() > 0, lambda: x * 2.0, lambda: paddle.exp(x))
        n = paddle.full([1], 3, "int64")
        _, z = static.nn.while_loop(lambda i, v: i < n, lambda i, v: [i + 1, paddle.sin(v) * x],
                                    [paddle.full([1], 0, "int64"), y])
        g, = static.gradients([z.sum()], [x])
        main._core.set_outputs([z, g])
        return {"main": main._core.text(), "passes": optimized(main._core)}


@pytest.mark.parametrize("make", [training, twice, control, branches], ids=lambda f: f.__name__)
def test_golden(make):
    text = "".join(f"---- {title}\n{part}\n" for title, part in make().items())
    path = GOLDENS / f"{make.__name__}.txt"
    if os.environ.get("PROA_GOLDENS") == "write":
        path.write_text(text)
    assert text == path.read_text(), "the program has changed: look at it, then PROA_GOLDENS=write"
