"""fleet on static programs: gradients of several processes that travel in float16, beside the other switches."""
import pytest

from _job import passes
from proa.distributed import fleet

HALF = """
from proa.distributed import fleet
paddle.enable_static()
fleet.init(is_collective=True)
rng = np.random.RandomState(0)
w, x = rng.standard_normal([5, 3]).astype("float32"), rng.standard_normal([4, 6, 5]).astype("float32")

def trained(half, switches):
    # (weights after four runs, types of the program's operators)
    strategy = fleet.DistributedStrategy()
    strategy.fp16_allreduce = half
    for name, value in switches.items():
        setattr(strategy, name, value)
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()), paddle.utils.unique_name.guard():
        attr = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Assign(w))
        out = paddle.static.nn.fc(paddle.static.data("x", [6 // size, 5]), 3, weight_attr=attr, bias_attr=False)
        if "recompute" in switches:
            strategy.recompute_configs = {"checkpoints": [out.name]}
        fleet.distributed_optimizer(paddle.optimizer.SGD(0.5), strategy)
        fleet.minimize(paddle.mean(out * out))
        exe = paddle.static.Executor()
        exe.run(startup)
        for step in range(4):
            exe.run(main, {"x": np.split(x[step], size)[rank]})
        return np.array(paddle.static.global_scope().find_var("w").get_tensor()), [op.type for op in main.global_block().ops]

def formula(merged):
    want, total = w.copy(), 0
    for step in range(4):
        own = [np.float16(2 * size / 18 * rows.T @ (rows @ want)) / np.float16(size) for rows in np.split(x[step], size)]
        total = total + np.float32(np.float16(sum(np.float32(g) for g in own)))
        if not merged or step % 2:
            want, total = want - 0.5 * total / (2 if merged else 1), 0
    return want

for switches in ({}, {"recompute": True}, {"amp": True, "amp_configs": {"init_loss_scaling": 8.0}},
                 {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2, "avg": True}}):
    got, types = trained(True, switches)
    close = 2e-3 if "amp" in switches else 1e-6  # AMP's products are in float16, the formula's are not
    np.testing.assert_allclose(got, formula("gradient_merge" in switches), rtol=close, atol=close, err_msg=str(switches))
    at = types.index("c_allreduce_sum")
    assert types[at - 2:at + 2] == ["cast", "scale", "c_allreduce_sum", "cast"], types
    plain, types = trained(False, switches)
    assert types.count("c_allreduce_sum") == 1 and 1e-7 < np.abs(plain - got).max() < 1e-2, np.abs(plain - got).max()
print("ok", rank)
"""


def test_gradients_travel_in_float16(tmp_path):
    assert passes(tmp_path, 2, HALF, environment={"PYTHONWARNINGS": "ignore"}).count("ok") == 2


def test_no_servers_is_a_warning():
    alone = fleet.Fleet()
    with pytest.raises(ValueError, match="fleet.shrink: .*call fleet.init first"):
        alone.shrink(1)
    alone.init(fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_num=1))
    with pytest.warns(UserWarning, match="fleet.init_worker: the job has no servers"):
        alone.init_worker()
