"""The pass `update`: a whole training step as one program, whose optimizer's steps follow the gradients that they need.
Losses, parameters and fetched gradients are eager execution's, to the bit; where steps must wait for all gradients they do."""
import contextlib

import numpy as np
import pytest

import proa as paddle
from proa import nn, static

F = nn.functional
RNG = np.random.default_rng(7)
X, Y = RNG.standard_normal((16, 64)).astype("float32"), RNG.integers(0, 10, (16, 1))
SIZES = ((64, 512), (512, 512), (512, 10))
WEIGHTS = [RNG.standard_normal(s).astype("float32") * 0.05 for s in SIZES]
STEPS = 4


class Net(nn.Layer):
    def __init__(self, shared=False, rate=1.0, regularizer=None):
        super().__init__()
        attrs = [paddle.ParamAttr(initializer=nn.initializer.Assign(w), learning_rate=rate, regularizer=regularizer)
                 for w in WEIGHTS]
        self.shared = shared
        self.a, self.b, self.c = (nn.Linear(*s, weight_attr=a) for s, a in zip(SIZES, attrs))

    def forward(self, x, y):
        x = F.gelu(self.b(F.relu(self.a(x))))
        if self.shared:
            x = paddle.tanh(paddle.matmul(x, self.b.weight.t()))
        return F.cross_entropy(self.c(x), y)


@contextlib.contextmanager
def building():
    paddle.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            yield main, startup
    finally:
        paddle.disable_static()


@contextlib.contextmanager
def passes(names):
    paddle.set_flags({"FLAGS_passes": names})
    try:
        yield
    finally:
        paddle.set_flags({"FLAGS_passes": "all"})


def built(main, net, optimizer):
    x, y = static.data("x", [None, 64]), static.data("y", [None, 1], "int64")
    loss = net()(x, y)
    opt = optimizer(None)
    return loss, opt.minimize(loss)[1]


def program(net, optimizer, names, fetch_gradients=False):
    """Losses, final parameters and (of the last step) gradients of a program; names: passes, None for none."""
    with building() as (main, startup), passes(names or "none"):
        loss, pairs = built(main, net, optimizer)
        exe = static.Executor()
        exe.run(startup)
        runs = static.CompiledProgram(main) if names else main
        fetches = [loss] + ([g for _, g in pairs] if fetch_gradients else [])
        out = [exe.run(runs, {"x": X, "y": Y}, fetches) for _ in range(STEPS)]
        parameters = {p.name: np.array(static.global_scope().find_var(p.name).get_tensor()) for p, _ in pairs}
        return [float(o[0]) for o in out], parameters, out[-1][1:]


def eager(net, optimizer):
    with paddle.utils.unique_name.guard():
        model, losses = net(), []
        opt = optimizer(model.parameters())
        for _ in range(STEPS):
            loss = model(paddle.to_tensor(X), paddle.to_tensor(Y))
            loss.backward()
            opt.step()
            opt.clear_grad()
            losses.append(float(loss))
        return losses, {p.name: p.numpy() for p in model.parameters()}


def steps_before_backward_ends(net, optimizer, names="optimizer,optimizer_interleaving"):
    """The number of the optimizer's steps before the last op of the backward, and the number of all."""
    with building() as (main, _):
        loss, _ = built(main, net, optimizer)
        core = main._core.clone()
        core.set_outputs([core.find(loss.name)])
        core.optimize(names)
        ops = core.ops(0)
        last = max(i for i, (_, role) in enumerate(ops) if role & 1)
        steps = [i for i, (name, _) in enumerate(ops) if name.endswith("_step")]
        return sum(i < last for i in steps), len(steps)


def optimizer(kind, **options):
    return lambda parameters: getattr(paddle.optimizer, kind)(0.01, parameters=parameters, **options)


CASES = {  # the net, the optimizer, whether steps can move
    "sgd": (Net, optimizer("SGD"), True),
    "momentum": (Net, optimizer("Momentum", momentum=0.9, use_nesterov=True), True),
    "adam": (Net, optimizer("Adam"), True),
    "adamw": (Net, optimizer("AdamW", weight_decay=0.1), True),
    "lamb": (Net, optimizer("Lamb"), True),
    "rmsprop, centred": (Net, optimizer("RMSProp", centered=True, momentum=0.5), True),
    "decay": (Net, optimizer("Adam", weight_decay=0.02), True),
    "decay of one's own": (lambda: Net(regularizer=paddle.regularizer.L1Decay(0.01)), optimizer("SGD"), True),
    "rate of one's own": (lambda: Net(rate=0.5), optimizer("Momentum"), True),
    "shared": (lambda: Net(shared=True), optimizer("Momentum"), True),
    "clip by value": (Net, optimizer("Adam", grad_clip=nn.ClipGradByValue(0.001)), True),
    "clip by norm": (Net, optimizer("SGD", grad_clip=nn.ClipGradByNorm(0.01)), True),
    "clip by global norm": (Net, optimizer("SGD", grad_clip=nn.ClipGradByGlobalNorm(0.01)), False),
}


@pytest.mark.parametrize("name", CASES)
def test_same_bits_as_eager(name):
    net, opt, moves = CASES[name]
    early, steps = steps_before_backward_ends(net, opt)
    assert steps > 1 and early if moves else early == 0
    assert steps_before_backward_ends(net, opt, "optimizer")[0] == 0
    want, weights = eager(net, opt)
    for names in (None, "optimizer,optimizer_interleaving", "optimizer_interleaving"):
        losses, parameters, _ = program(net, opt, names)
        assert losses == want, names
        assert parameters.keys() == weights.keys()
        assert all(np.array_equal(parameters[k], weights[k]) for k in weights), names


def test_all_passes():
    net, opt, _ = CASES["adam"]
    want, got = program(net, opt, None), program(net, opt, "all")
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)


@pytest.mark.parametrize("name", ["momentum", "decay", "clip by global norm"])
def test_gradients_can_be_fetched(name):
    net, opt, _ = CASES[name]
    want, got = program(net, opt, None, True), program(net, opt, "optimizer,optimizer_interleaving", True)
    assert want[0] == got[0] and len(want[2]) == 6
    for a, b in zip(want[2], got[2]):
        assert np.array_equal(a, b)


def test_a_shared_parameter_waits_for_its_last_reader():
    with building() as (main, _):
        loss, _ = built(main, lambda: Net(shared=True), optimizer("SGD"))
        core = main._core.clone()
        core.set_outputs([core.find(loss.name)])
        core.optimize("optimizer,optimizer_interleaving")
        lines = [line.strip() for line in core.text().splitlines()]
        step = next(i for i, line in enumerate(lines) if "sgd_step" in line and "linear_1.w_0" in line)
        reads = [i for i, line in enumerate(lines) if "linear_1.w_0" in line.split("=", 1)[-1] and "GRAD" not in line
                 and "_step" not in line and "(" in line]
        assert reads and max(reads) < step


def test_found_infinity_holds_all_steps_back():
    with building() as (main, startup):
        x, y = static.data("x", [None, 64]), static.data("y", [None, 1], "int64")
        loss = Net()(x, y)
        opt = static.amp.decorate(paddle.optimizer.SGD(0.01), init_loss_scaling=2.0 ** 60, use_dynamic_loss_scaling=True,
                                  decr_every_n_nan_or_inf=1)
        opt.minimize(loss)
        exe, names = static.Executor(), [p.name for p in main.all_parameters()]
        exe.run(startup)
        before = [np.array(static.global_scope().find_var(n).get_tensor()) for n in names]
        with passes("optimizer,optimizer_interleaving"):
            exe.run(static.CompiledProgram(main), {"x": X, "y": Y}, [loss])
        for name, value in zip(names, before):
            assert np.array_equal(value, np.array(static.global_scope().find_var(name).get_tensor())), name


def test_less_memory():
    """The arena of a deep network's step holds a few gradients, not all."""
    with building() as (main, startup):
        x = h = static.data("x", [None, 256])
        for _ in range(8):
            h = F.relu(static.nn.fc(h, 256))
        loss = (h - x).square().mean()
        paddle.optimizer.SGD(0.01).minimize(loss)
        static.Executor().run(startup)
        arenas = []
        for names in ("all,-optimizer_interleaving", "all"):
            with passes(names):
                exe = static.Executor()
                exe.run(static.CompiledProgram(main), {"x": np.ones((4, 256), "float32")}, [loss])
                arenas += [plan.executor.stats()["arena_bytes"] for plan in exe._plans.values()]
        assert arenas[1] < 0.5 * arenas[0]
