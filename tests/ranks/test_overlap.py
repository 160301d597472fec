"""Exchanges of gradients beside the rest of backward, in to_static layers and static programs: how many were under way while later
steps ran, and the bits that waiting gives."""
import pytest
from _job import passes

BODY = """
from proa import _core
from proa.fluid.transpiler.collective import GradAllReduce

LAYERS, WIDTH, STEPS = 6, 32, 5
rng = np.random.RandomState(3 + rank)
rows = [rng.standard_normal((8, WIDTH)).astype("float32") for _ in range(STEPS)]

def made():
    paddle.seed(7)
    layers = [[paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Tanh()] for _ in range(LAYERS)]
    return paddle.nn.Sequential(*sum(layers, []))

def to_static():
    net = made()
    called = paddle.jit.to_static(net, full_graph=True)
    model = paddle.DataParallel(called, comm_buffer_size=0.008, last_comm_buffer_size=0.004)
    opt = paddle.optimizer.Momentum(0.1, parameters=net.parameters())
    for x in rows:
        (model(paddle.to_tensor(x)) ** 2).mean().backward()
        opt.step()
        opt.clear_grad()
    programs = net.forward.program_cache.values()
    return [p.numpy() for p in net.parameters()], sum(p.compiled.stats()["overlapped"] for p in programs)

def static():
    paddle.enable_static()
    main, startup, env = paddle.static.Program(), paddle.static.Program(), dist.ParallelEnv()
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()), paddle.utils.unique_name.guard():
        net = made()
        loss = (net(paddle.static.data("x", [8, WIDTH])) ** 2).mean()
        paddle.optimizer.Momentum(0.1).minimize(loss)
        GradAllReduce(fuse_grad_size_in_MB=0.005).transpile(startup, main, env.rank, env.trainer_endpoints, env.current_endpoint)
        exe = paddle.static.Executor()
        exe.run(startup)
        for x in rows:
            exe.run(main, {"x": x}, [loss])
        weights = [np.array(paddle.static.global_scope().find_var(p.name).get_tensor()) for p in net.parameters()]
    paddle.disable_static()
    return weights, sum(plan.executor.stats()["overlapped"] for plan in exe._plans.values())

for train, least in ((to_static, 2 * LAYERS - 2), (static, LAYERS - 1)):
    _core.set_flag("passes", "-overlap")
    waited, none = train()
    _core.set_flag("passes", "all")
    beside, count = train()
    assert none == 0 and count >= STEPS * least, (train, none, count)
    for a, b in zip(waited, beside):
        assert (a == b).all(), (train, np.abs(a - b).max())
        of_all = []
        dist.all_gather(of_all, paddle.to_tensor(b))
        assert all((o.numpy() == b).all() for o in of_all)
"""


@pytest.mark.parametrize("ranks,shared", [(2, "1"), (2, "0"), (3, "0")])
def test_gradients_are_exchanged_beside_backward(tmp_path, ranks, shared):
    passes(tmp_path, ranks, BODY, environment={"PROA_SHM": shared})
