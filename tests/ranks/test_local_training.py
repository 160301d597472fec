"""Ranks that do not average whole gradients, LocalSGD and DGC: eager and static trainings over fleet against their formulas in
NumPy, and against one process where they are exact."""
import pytest
from _job import passes

# A linear layer y = x w + b with loss mean(y²), of which NumPy knows the gradients. `trained` trains it through fleet.
SETUP = """
from proa.distributed import fleet
D, B, STEPS = 128, 4, 8
rng = np.random.RandomState(0)
w0, b0 = rng.uniform(-0.3, 0.3, [D, D]).astype("float32"), rng.uniform(-0.3, 0.3, [D]).astype("float32")
x = rng.standard_normal([STEPS, size, B, D]).astype("float32")

def gradients(w, b, rows):
    y = rows @ w + b
    slope = 2 * y / y.size
    return rows.T @ slope, slope.sum(0), np.mean(y * y)

def strategy_of(switches):
    strategy = fleet.DistributedStrategy()
    for name, value in switches.items():
        setattr(strategy, name, value)
    return strategy

def eager(switches, make, rate):
    strategy = strategy_of(switches)
    fleet.init(is_collective=True, strategy=strategy)
    net = paddle.nn.Linear(D, D)
    net.weight.set_value(w0 if rank == 0 else np.zeros_like(w0))  # rank 0's values count
    net.bias.set_value(b0)
    model, opt = fleet.distributed_model(net), fleet.distributed_optimizer(make(rate(), net.parameters()))
    seen = []
    for step in range(STEPS):
        out = model(paddle.to_tensor(x[step, rank]))
        loss = (out * out).mean()
        loss.backward(); opt.minimize(loss); opt.clear_grad()
        if isinstance(opt._learning_rate, paddle.optimizer.lr.LRScheduler):
            opt._learning_rate.step()
        seen.append(net.weight.numpy())
    return seen, net.bias.numpy(), opt

def static(switches, make, rate):
    paddle.enable_static()
    fleet.init(is_collective=True)
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()), paddle.utils.unique_name.guard():
        attrs = [paddle.ParamAttr(name=n, initializer=paddle.nn.initializer.Assign(v)) for n, v in (("w", w0 if rank == 0 else w0 * 0), ("b", b0))]
        out = paddle.static.nn.fc(paddle.static.data("x", [B, D]), D, weight_attr=attrs[0], bias_attr=attrs[1])
        loss, schedule = paddle.mean(out * out), rate()
        fleet.distributed_optimizer(make(schedule, None), strategy_of(switches))
        fleet.minimize(loss)
        exe, seen, find = paddle.static.Executor(), [], lambda n: np.array(paddle.static.global_scope().find_var(n).get_tensor())
        exe.run(startup)
        for step in range(STEPS):
            exe.run(main, {"x": x[step, rank]})
            if isinstance(schedule, paddle.optimizer.lr.LRScheduler):
                schedule.step()
            seen.append(find("w"))
        bias = find("b")
    paddle.disable_static()
    return seen, bias, main

trained = {"eager": eager, "static": static}["MODE"]
"""

LOCAL = SETUP + """
def formula(k, begin, adaptive, momentum, rates):
    first_k, w, b = k, [w0.astype("float64")] * size, [b0.astype("float64")] * size
    vw, vb, last, seen, ks = [0] * size, [0] * size, begin, [], []
    for step in range(1, STEPS + 1):
        rate, losses = rates[step - 1], []
        for r in range(size):
            gw, gb, loss = gradients(w[r], b[r], x[step - 1, r])
            vw[r], vb[r] = momentum * vw[r] + gw, momentum * vb[r] + gb
            w[r], b[r] = w[r] - rate * vw[r], b[r] - rate * vb[r]
            losses.append(loss)
        if step == 1:
            first_loss, first_rate = np.mean(losses), rate
        if step <= begin or step - last == k:
            w, b, last = [sum(w) / size] * size, [sum(b) / size] * size, step
            if adaptive and step > begin:
                k = min(max(int(np.ceil(np.sqrt(first_rate * np.mean(losses) / (rate * first_loss) * first_k))), 1), 16)
        seen.append(w[rank]); ks.append(k)
    return seen, b[rank], ks

fixed = lambda: 4.0
falling = lambda: paddle.optimizer.lr.StepDecay(4.0, 3, 0.1)
opt = paddle.optimizer
for switches, k, begin, adaptive, momentum, rate in (
        ({"localsgd": True, "localsgd_configs": {"k_steps": 3, "begin_step": 2}}, 3, 2, False, 0.0, fixed),
        ({"localsgd": True, "localsgd_configs": {"k_steps": 2, "begin_step": 0}}, 2, 0, False, 0.9, fixed),
        ({"adaptive_localsgd": True, "adaptive_localsgd_configs": {"init_k_steps": 2, "begin_step": 1}}, 2, 1, True, 0.0, falling),
        ({"localsgd": True, "localsgd_configs": {"k_steps": 1, "begin_step": 1}}, 1, 1, False, 0.0, fixed)):
    make = lambda rate, params: opt.Momentum(rate, momentum, params) if momentum else opt.SGD(rate, params)
    rates = [4.0 * (0.1 ** (i // 3) if rate is falling else 1) for i in range(STEPS)]
    want, bias, ks = formula(k, begin, adaptive, momentum, rates)
    got, got_bias, _ = trained(switches, make, rate)
    for step in range(STEPS):
        np.testing.assert_allclose(got[step], want[step], rtol=1e-5, atol=1e-6, err_msg=f"{switches} step {step}")
    np.testing.assert_allclose(got_bias, bias, rtol=1e-5, atol=1e-6)
    assert not adaptive or max(ks) > 2, ks  # the rate's fall made k grow
    if k == 1:  # is plain descent on the joined batch
        w, b = w0, b0
        for step in range(STEPS):
            gw, gb, _ = gradients(w, b, x[step].reshape(-1, D))
            w, b = w - 4.0 * gw, b - 4.0 * gb
        np.testing.assert_allclose(got[-1], w, rtol=2e-5, atol=2e-6)
print("ok", rank)
"""

DGC = SETUP + """
def decayed(v, g, decay):
    return g + np.float32(decay) * v

def clipped(g, norm):
    return g * min(np.float32(1), np.float32(norm) / np.sqrt((g * g).sum())) if norm else g

def formula(sparsity, begin, rampup, momentum, nesterov, decay, clip, rate):
    f, w, b = np.float32, w0.copy(), b0.copy()
    zeros = lambda: np.zeros_like(w0).ravel()
    u, v, vw, vb, seen = [zeros() for _ in range(size)], [zeros() for _ in range(size)], np.zeros_like(w0), np.zeros_like(b0), []
    for step in range(STEPS):
        each = [gradients(w, b, x[step, r]) for r in range(size)]
        gb = sum(g[1] for g in each) / f(size)
        gb = decayed(b, clipped(gb, clip), decay)
        vb = f(momentum) * vb + gb
        b = b - f(rate) * (gb + f(momentum) * vb if nesterov else vb)
        if step < begin:
            gw = decayed(w, sum(g[0] for g in each) / f(size), decay)
            vw = f(momentum) * vw + gw
            w = w - f(rate) * (gw + f(momentum) * vw if nesterov else vw)
            seen.append(w)
            continue
        share = sparsity[min((step - begin) * len(sparsity) // rampup, len(sparsity) - 1)]
        kept, total = int(f(w.size) * (f(1) - f(share))), zeros()
        for r in range(size):
            g = each[r][0] / f(size)  # the rank's share of the average
            g = decayed(w, clipped(g, clip and clip / np.sqrt(size)) * f(size), decay).ravel()
            if nesterov:
                u[r] = f(momentum) * (u[r] + g)
                v[r] = v[r] + u[r] + g
            else:
                u[r] = f(momentum) * u[r] + g
                v[r] = v[r] + u[r]
            top = np.argsort(-np.abs(v[r]))[:kept]
            total[top] += v[r][top]
            u[r][top] = v[r][top] = 0
        w = w - f(rate) * (total / f(size)).reshape(D, D)
        seen.append(w)
    return seen, b

for sparsity, begin, rampup, momentum, nesterov, decay, clip, rate in (
        ([0.75, 0.9, 0.99], 2, 4, 0.9, False, 0.0, None, 1.0), ([0.9], 0, 1, 0.5, True, 0.01, None, 1.0),
        ([0.5, 0.99], 1, 3, 0.9, True, 0.0, 0.05, 1.0), ([], 0, 1, 0.9, False, 0.0, 0.02, 1.0), ([0.0], 0, 1, 0.9, False, 0.0, None, 4.0)):
    configs = {"rampup_begin_step": begin, "rampup_step": rampup, "sparsity": sparsity}
    make = lambda rate, params: paddle.optimizer.Momentum(rate, momentum, params, use_nesterov=nesterov, weight_decay=decay or None,
                                                          grad_clip=clip and paddle.nn.ClipGradByNorm(clip))
    want, bias = formula(sparsity or [0.999], begin, rampup, momentum, nesterov, decay, clip, rate)
    got, got_bias, _ = trained({"dgc": True, "dgc_configs": configs}, make, lambda: rate)
    for step in range(STEPS):
        np.testing.assert_allclose(got[step], want[step], rtol=1e-5, atol=1e-6, err_msg=f"{configs} step {step}")
    np.testing.assert_allclose(got_bias, bias, rtol=1e-5, atol=1e-6)
    if sparsity == [0.0]:  # all is sent, and momentum cleared with it: plain descent on the joined batch, beside the bias
        lone, b = w0, b0.copy()
        vb = 0
        for step in range(STEPS):
            gw, gb, _ = gradients(lone, b, x[step].reshape(-1, D))
            vb = momentum * vb + gb
            lone, b = lone - rate * gw, b - rate * vb
        np.testing.assert_allclose(got[-1], lone, rtol=2e-5, atol=2e-6)
print("ok", rank)
"""


@pytest.mark.parametrize("ranks, mode", [(2, "eager"), (4, "eager"), (2, "static"), (4, "static")])
@pytest.mark.parametrize("body", [LOCAL, DGC], ids=["localsgd", "dgc"])
def test_trainings_are_their_formulas(tmp_path, ranks, mode, body):
    assert passes(tmp_path, ranks, body.replace("MODE", mode), environment={"PYTHONWARNINGS": "ignore"}).count("ok") == ranks


RESUMED = SETUP + """
opt = paddle.optimizer

for switches in ({"localsgd": True, "localsgd_configs": {"k_steps": 3, "begin_step": 2}},
                 {"adaptive_localsgd": True, "adaptive_localsgd_configs": {"init_k_steps": 2, "begin_step": 1}},
                 {"dgc": True, "dgc_configs": {"rampup_begin_step": 1, "rampup_step": 6, "sparsity": [0.5, 0.99]}}):
    make = lambda rate, params: opt.Momentum(rate, 0.9, params)

    def train(steps, states=None):
        with paddle.utils.unique_name.guard():  # a job's process makes one net
            net = paddle.nn.Linear(D, D)
            net.weight.set_value(w0)
            model = fleet.distributed_model(net)
            wrapped = fleet.distributed_optimizer(make(1.0, net.parameters()))
            if states:
                net.set_state_dict(states[0]); wrapped.set_state_dict(states[1])
            for step in steps:
                out = model(paddle.to_tensor(x[step, rank]))
                loss = (out * out).mean()
                loss.backward(); wrapped.minimize(loss); wrapped.clear_grad()
            return net, wrapped

    fleet.init(is_collective=True, strategy=strategy_of(switches))
    want, _ = train(range(8))
    net, first = train(range(5))
    path = f"{sys.argv[1]}/state{rank}"
    paddle.save([net.state_dict(), first.state_dict()], path)
    net, _ = train(range(5, 8), paddle.load(path))
    np.testing.assert_array_equal(net.weight.numpy(), want.weight.numpy(), err_msg=str(switches))
print("ok", rank)
"""


def test_trainings_go_on_from_their_states(tmp_path):
    """Each rank saves its own."""
    assert passes(tmp_path, 2, RESUMED.replace("MODE", "eager"), environment={"PYTHONWARNINGS": "ignore"}).count("ok") == 2


REFUSED = SETUP + """
opt, net = paddle.optimizer, paddle.nn.Linear(2, 2)
sgd, adam, momentum = (lambda: opt.SGD(0.1, net.parameters())), (lambda: opt.Adam(0.1, parameters=net.parameters())), \\
    (lambda: opt.Momentum(0.1, parameters=net.parameters()))
for switches, degrees, make, words in (
        ({"dgc": True, "amp": True}, {}, momentum, ("dgc", "amp")), ({"dgc": True, "localsgd": True}, {}, momentum, ("dgc", "localsgd")),
        ({"localsgd": True, "gradient_merge": True}, {}, sgd, ("localsgd", "gradient_merge")), ({"dgc": True}, {}, sgd, ("dgc", "Momentum")),
        ({"adaptive_localsgd": True}, {}, adam, ("adaptive_localsgd", "Adam")), ({"localsgd": True}, {"mp_degree": 2}, sgd, ("localsgd", "mp_degree"))):
    strategy = strategy_of(switches)
    strategy.hybrid_configs = degrees
    fleet.init(is_collective=True, strategy=strategy)
    try:
        fleet.distributed_model(net)
        fleet.distributed_optimizer(make())
    except ValueError as e:
        assert all(word in str(e) for word in words), e
    else:
        raise RuntimeError(switches)
fleet.init(is_collective=True, strategy=fleet.DistributedStrategy())
fleet.distributed_model(net)
try:
    fleet.distributed_optimizer(sgd(), strategy_of({"localsgd": True}))
except ValueError as e:
    assert "fleet.init" in str(e), e
else:
    raise RuntimeError("averaged twice")
strategy = strategy_of({"adaptive_localsgd": True})
fleet.init(is_collective=True, strategy=strategy)
fleet.distributed_model(net)
try:
    fleet.distributed_optimizer(sgd()).step()
except ValueError as e:
    assert "minimize" in str(e), e
else:
    raise RuntimeError("no loss")
print("ok", rank)
"""


def test_what_does_not_go_together_is_an_error(tmp_path):
    assert passes(tmp_path, 2, REFUSED.replace("MODE", "eager"), environment={"PYTHONWARNINGS": "ignore"}).count("ok") == 2
