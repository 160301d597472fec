"""strategy.pipeline of static programs: stages by device_guard, beside data parallelism, AMP and recompute, against one process on
the joined batch."""
import pytest
from _job import passes

MODEL = """
from proa.distributed import fleet
paddle.enable_static()
fleet.init(is_collective=True)
ROWS, MICRO, STEPS, WORDS, WIDTH = 16, 4, 50, 11, 8
rng = np.random.RandomState(0)
ids, labels = rng.randint(0, WORDS, [STEPS, ROWS, 3]), rng.randint(0, WORDS, [STEPS, ROWS, 3, 1])

def shared(value):
    found = []
    paddle.disable_static()
    dist.all_gather_object(found, value)
    paddle.enable_static()
    return found

def network(stages, tied):
    # an embedding, layers with a connection past the middle stages, a loss; `tied` uses the table as the output layer, too
    at = lambda piece: paddle.static.device_guard(f"gpu:{piece * stages // 4}")
    with at(0):
        words = paddle.static.data("ids", [None, 3], "int64")
        table = paddle.static.create_parameter([WORDS, WIDTH], "float32", name="table")
        first = hidden = paddle.nn.functional.embedding(words, table)
    for piece in range(4):
        with at(piece):
            hidden = paddle.tanh(paddle.static.nn.fc(hidden, WIDTH, num_flatten_dims=2, weight_attr=paddle.ParamAttr(name=f"w{piece}"),
                                                     bias_attr=paddle.ParamAttr(name=f"b{piece}")))
            middle = hidden if piece == 1 else middle if piece else None
    with at(3):
        label = paddle.static.data("label", [None, 3, 1], "int64")
        hidden = hidden + first
        logits = paddle.matmul(hidden, table, transpose_y=True) if tied else paddle.static.nn.fc(
            hidden, WORDS, num_flatten_dims=2, weight_attr=paddle.ParamAttr(name="out"), bias_attr=False)
        loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, label))
    return loss, middle

def trained(make, switches, stages, tied, schedule):
    # (losses, parameters by name, main program); stages 0: one process
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()), paddle.utils.unique_name.guard():
        loss, middle = network(max(stages, 1), tied)
        strategy = fleet.DistributedStrategy()
        for name, value in switches.items():
            setattr(strategy, name, value)
        if strategy.recompute:
            strategy.recompute_configs = {"checkpoints": [middle.name]}
        copies = size // stages if stages else 1
        if stages:
            strategy.pipeline = True
            strategy.pipeline_configs = {"accumulate_steps": MICRO, "micro_batch_size": ROWS // MICRO // copies, "schedule_mode": schedule}
            fleet.distributed_optimizer(make(), strategy)
            fleet.minimize(loss)
        else:
            from proa.distributed.fleet import static_optimizers
            static_optimizers.transformed(make(), strategy).minimize(loss)
        exe, losses, part = paddle.static.Executor(), [], rank // max(stages, 1)
        paddle.seed(7)
        exe.run(startup)
        for step in range(STEPS):
            feed = {"ids": ids[step], "label": labels[step]}
            if stages:
                feed = {name: np.split(value, copies)[part] for name, value in feed.items()}
            got = exe.run(main, feed, [loss])
            assert len(got) == (stages == 0 or rank % stages == stages - 1), got
            losses.append(float(np.ravel(got[0])[0]) if got else None)
        scope = paddle.static.global_scope()
        found = {p.name: scope.find_var(p.name) for p in main.all_parameters()}
        params = {name: np.array(var.get_tensor()) for name, var in found.items() if var is not None and var.value is not None}
        scales = [np.array(scope.find_var(v.name).get_tensor()) for v in main.list_vars() if "loss_scaling" in v.name]
    if stages:
        losses = np.mean([each for each in shared(losses) if each[0] is not None], 0)
    return losses, params, main, scales
"""

EQUAL = """
opt, clip = paddle.optimizer, lambda: paddle.nn.ClipGradByGlobalNorm(0.05)
amp = {"amp": True, "amp_configs": {"init_loss_scaling": 2.0 ** 24, "incr_every_n_steps": 100, "decr_every_n_nan_or_inf": 1, "decr_ratio": 2.0 ** -12}}
for make, switches, tied, schedule, close in (
        (lambda: opt.SGD(0.5), {}, False, "1F1B", 1e-5), (lambda: opt.Adam(0.01, epsilon=1e-4), {}, True, "1F1B", 1e-5),
        (lambda: opt.Momentum(0.1, 0.9, grad_clip=clip()), {"recompute": True}, True, "F-then-B", 1e-5),
        (lambda: opt.Momentum(0.1, 0.9, grad_clip=clip()), amp, False, "1F1B", 3e-3)):
    want, got = trained(make, switches, 0, tied, None), trained(make, switches, STAGES, tied, schedule)
    np.testing.assert_allclose(got[0], want[0], rtol=close, err_msg=str(switches))
    everything = shared(got[1])
    owned, largest = {name for params in everything for name in params}, max(np.abs(value).max() for value in want[1].values())
    assert owned == set(want[1]), (owned, set(want[1]))
    for r, params in enumerate(everything):
        for name, value in params.items():
            if name != "table" or r % STAGES == 0:  # a reader of the table has it as it was before the last step
                np.testing.assert_allclose(value, want[1][name], rtol=0, atol=close * largest, err_msg=f"{name} {switches}")
    assert len(got[1]) < len(want[1]), "this rank has parameters of other stages"
    assert got[3] == want[3] and (not got[3] or got[3][0] < 2.0 ** 24), (got[3], want[3])
    pipeline, stage = got[2]._pipeline, rank % STAGES
    assert pipeline.most_held == (min(STAGES - stage, MICRO) if schedule == "1F1B" else MICRO), pipeline.most_held
    section = got[2]._pipeline_opt["section_program"]
    types = [op.type for op in section.global_block().ops]
    assert ("recv_v2" in types) and ("send_v2" in types), types
    devices = {op.attr("op_device") for op in section.global_block().ops if op.attr("op_role") == 0}
    assert f"gpu:{stage}" in devices and not devices - {f"gpu:{stage}", ""}, devices
print("ok", rank)
"""


@pytest.mark.parametrize("ranks, stages", [(2, 2), (4, 4), (4, 2)], ids=["2", "4", "dp2-2"])
def test_stages_are_one_process(tmp_path, ranks, stages):
    body = MODEL + EQUAL.replace("STAGES", str(stages))
    assert passes(tmp_path, ranks, body, environment={"PYTHONWARNINGS": "ignore"}).count("ok") == ranks


REFUSED = """
from proa.distributed import fleet
paddle.enable_static()
fleet.init(is_collective=True)

def error(places, switches={}, configs={}, names=("a", "b")):
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()), paddle.utils.unique_name.guard():
        out = paddle.static.data("x", [None, 3])
        for place, name in zip(places, names):
            with paddle.static.device_guard(place):
                out = paddle.static.nn.fc(out, 3, weight_attr=paddle.ParamAttr(name=name), bias_attr=False)
        with paddle.static.device_guard(places[-1]):
            loss = paddle.mean(out)
        strategy = fleet.DistributedStrategy()
        strategy.pipeline, strategy.pipeline_configs = True, {"accumulate_steps": 2, **configs}
        for name, value in switches.items():
            setattr(strategy, name, value)
        fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy)
        try:
            fleet.minimize(loss)
        except (ValueError, NotImplementedError) as e:
            return str(e)
        return ""

for places, switches, configs, words in (
        ((None, None), {}, {}, "device_guard"), (("gpu:0", "gpu:2"), {}, {}, "stage 1"), (("gpu:1", "gpu:0"), {}, {}, "stage 0"),
        (("gpu:0", "gpu:0"), {"gradient_merge": True}, {}, "gradient_merge"), (("gpu:0", "gpu:1"), {}, {"schedule_mode": "B"}, "schedule_mode"),
        (("gpu:0", "gpu:1"), {"sharding": True}, {}, "sharding")):
    got = error(places, switches, configs)
    assert words in got, (places, words, got)
three = error(("gpu:0", "gpu:1", "gpu:2"), names="abc")
assert "3 stages" in three and "2 ranks" in three, three
print("ok", rank)
"""


def test_programs_that_cannot_be_divided(tmp_path):
    assert passes(tmp_path, 2, REFUSED, environment={"PYTHONWARNINGS": "ignore"}).count("ok") == 2
