"""strategy.sharding of static programs: stages 1 and 2, beside the other switches, against one process on the joined batch."""
import pytest
from _job import passes

BODY = """
from proa.distributed import fleet
paddle.enable_static()
fleet.init(is_collective=True)
rng = np.random.RandomState(0)
x = rng.standard_normal([6, 8, 5]).astype("float32")
SIZES = (5, 7, 6, 3)
weights = [rng.uniform(-0.7, 0.7, s).astype("float32") for s in zip(SIZES, SIZES[1:])]

def trained(make, switches, sharded):
    # (losses, parameters by name, main program, elements of moments)
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()), paddle.utils.unique_name.guard():
        out = paddle.static.data("x", [8 // (size if sharded else 1), 5])
        for i, w in enumerate(weights):
            first = w if rank == 0 or not sharded else w * 0  # rank 0's values count
            hidden = out = paddle.tanh(paddle.static.nn.fc(out, w.shape[1], bias_attr=paddle.ParamAttr(name=f"b{i}"), weight_attr=paddle.ParamAttr(
                name=f"w{i}", initializer=paddle.nn.initializer.Assign(first))))
        loss = paddle.mean(out * out)
        strategy = fleet.DistributedStrategy()
        for name, value in switches.items():
            setattr(strategy, name, value)
        if strategy.recompute:
            strategy.recompute_configs = {"checkpoints": [hidden.name]}
        if sharded:
            strategy.sharding, strategy.sharding_configs = True, CONFIGS
            fleet.distributed_optimizer(make(), strategy)
            fleet.minimize(loss)
        else:
            from proa.distributed.fleet import static_optimizers
            static_optimizers.transformed(make(), strategy).minimize(loss)
        exe, losses = paddle.static.Executor(), []
        exe.run(startup)
        for step in range(6):
            own = exe.run(main, {"x": np.split(x[step], size)[rank] if sharded else x[step]}, [loss])[0]
            if sharded:
                parts = []
                paddle.disable_static()
                dist.all_gather_object(parts, float(np.ravel(own)[0]))
                paddle.enable_static()
                own = np.mean(parts)
            losses.append(float(np.ravel(own)[0]))
        find = lambda n: np.array(paddle.static.global_scope().find_var(n).get_tensor())
        params = {p.name: find(p.name) for p in main.all_parameters()}
        scales = [find(v.name) for v in main.list_vars() if "loss_scaling" in v.name]
        return losses, params, main, sum(int(np.prod(v.shape)) for v in main.list_vars() if "moment" in v.name or "velocity" in v.name), scales

opt, clip = paddle.optimizer, lambda: paddle.nn.ClipGradByGlobalNorm(0.02)
amp = {"amp": True, "amp_configs": {"init_loss_scaling": 2.0 ** 24, "incr_every_n_steps": 100, "decr_every_n_nan_or_inf": 1, "decr_ratio": 2.0 ** -12}}
merge = {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2, "avg": True}}
for make, switches, close in (
        (lambda: opt.Momentum(0.5, 0.9, grad_clip=clip()), {}, 1e-5), (lambda: opt.AdamW(0.05, weight_decay=0.1), {"recompute": True}, 1e-5),
        (lambda: opt.Adam(0.05, grad_clip=paddle.nn.ClipGradByNorm(0.01)), {"lamb": True}, 1e-5),
        (lambda: opt.Momentum(0.5, 0.9, grad_clip=clip()), merge, 1e-5), (lambda: opt.Momentum(0.5, 0.9), {"lars": True}, 1e-5),
        (lambda: opt.Momentum(0.1, 0.9), amp, 3e-3), (lambda: opt.Momentum(0.1, 0.9, grad_clip=clip()), {**amp, **merge}, 3e-3)):
    want = trained(make, switches, False)
    got = trained(make, switches, True)
    np.testing.assert_allclose(got[0], want[0], rtol=close, err_msg=str(switches))
    for name, value in want[1].items():
        np.testing.assert_allclose(got[1][name], value, rtol=close * 10, atol=close, err_msg=f"{name} {switches}")
    held = []
    paddle.disable_static()
    dist.all_gather_object(held, got[3])
    paddle.enable_static()
    assert sum(held) == want[3] * size // CONFIGS["sharding_degree"] and max(held) < want[3], (held, want[3])
    assert got[4] == want[4], (got[4], want[4])
    assert not got[4] or got[4][0] < 2.0 ** 24, got[4]  # a step was skipped, on all ranks
    types = [op.type for op in got[2].global_block().ops]
    assert types.count("c_broadcast") == 6 and (types.count("c_reduce_sum") > 0) == (CONFIGS["stage"] == 2), types
print("ok", rank)
"""


@pytest.mark.parametrize("ranks, configs", [
    (2, {"sharding_degree": 2, "stage": 1}), (2, {"sharding_degree": 2, "stage": 2}), (4, {"sharding_degree": 4, "stage": 2}),
    (4, {"sharding_degree": 2, "dp_degree": 2, "hybrid_dp": True, "stage": 2})], ids=["2", "2-stage2", "4-stage2", "dp2-2-stage2"])
def test_sharded_programs_are_one_process(tmp_path, ranks, configs):
    assert passes(tmp_path, ranks, BODY.replace("CONFIGS", repr(configs)), environment={"PYTHONWARNINGS": "ignore"}).count("ok") == ranks


REFUSED = """
from proa.distributed import fleet
paddle.enable_static()
fleet.init(is_collective=True)
for configs, words in (({}, ("sharding_degree 8", "there are 2")), ({"sharding_degree": 2, "stage": 3}, ("stage", "3")),
                       ({"sharding_degree": 2, "mp_degree": 2}, ("mp_degree",)), ({"sharding_degree": 2}, ("1 parameters", "2 ranks"))):
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        loss = paddle.mean(paddle.static.nn.fc(paddle.static.data("x", [2, 3]), 1, bias_attr=False))
        strategy = fleet.DistributedStrategy()
        strategy.sharding, strategy.sharding_configs = True, configs
        fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy)
        try:
            fleet.minimize(loss)
        except (ValueError, NotImplementedError) as e:
            assert all(word in str(e) for word in words), e
        else:
            raise AssertionError(configs)
print("ok", rank)
"""


def test_degrees_that_do_not_fit(tmp_path):
    assert passes(tmp_path, 2, REFUSED, environment={"PYTHONWARNINGS": "ignore"}).count("ok") == 2
