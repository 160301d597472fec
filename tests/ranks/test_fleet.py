"""paddle.distributed.fleet with real processes: divided layers, hybrid groups, divided optimizer states and scalers against
one process on the joined batch; recompute and what it keeps."""
import numpy as np
import pytest

import proa as paddle
from proa.distributed.fleet.base.strategy_fields import StrategyMessage
from proa.distributed.fleet.meta_parallel import LayerDesc
from proa.distributed.fleet.meta_parallel.pipeline_layer import segments
from proa.distributed.fleet.meta_parallel.pipeline_schedule import SCHEDULES, most_alive
from proa.distributed.fleet.utils import recompute
from _job import passes

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
             lambda net: paddle.optimizer.AdamW(0.01, parameters=net.parameters(), weight_decay=0.01, grad_clip=clip()),
             lambda net: paddle.optimizer.Lamb(0.01, epsilon=1e-4, parameters=net.parameters(), exclude_from_weight_decay_fn=lambda p: p.ndim < 2),
             lambda net: paddle.fluid.optimizer.LarsMomentum(1.0, 0.9, 0.05, 0.01, parameter_list=net.parameters(), grad_clip=clip())):
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


def test_wrapper_of_a_group_given_by_hand(tmp_path):
    made = TEST.replace("fleet.distributed_optimizer(make(net))", "DygraphShardingOptimizer(make(net), hcg)")
    logs = passes(tmp_path, 2, "from proa.distributed.fleet.meta_optimizers.dygraph_optimizer import DygraphShardingOptimizer\n" +
                  made.replace("DEGREES", "{'sharding_degree': 2}"), environment={"PYTHONWARNINGS": "ignore"})
    assert made != TEST and logs.count("ok") == 2


SHARDED = MODEL + """
from proa.distributed.sharding import group_sharded_parallel, save_group_sharded_model
for level in ("os", "os_g", "p_g_os"):
    make = lambda net: paddle.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=clip())
    whole, want = alone(15, make)
    net = Whole()
    model, opt, _ = group_sharded_parallel(net, make(net), level, offload=level == "p_g_os", segment_size=10)
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
    states = paddle.load(sys.argv[1] + "/saved/model.pdopt")
    assert sum(t.size for k, t in states.items() if "moment" in k) == total, sorted(states)
    if level == "p_g_os":
        before = net.up.weight.numpy()
        model.set_state_dict({k: paddle.zeros_like(v) for k, v in model.state_dict().items()})
        assert all(float(p.abs().sum()) == 0 for p in net.parameters())
        model.set_state_dict(state)
        np.testing.assert_array_equal(net.up.weight.numpy(), before)
search = lambda net: paddle.optimizer.LBFGS(0.1, parameters=net.parameters())
for optimizer, level, said in ((make, "none", "level"), (search, "os_g", "LBFGS"), (search, "p_g_os", "LBFGS")):
    try:
        fresh = Whole()
        group_sharded_parallel(fresh, optimizer(fresh), level)
    except (NotImplementedError, ValueError) as e:
        assert said in str(e) and level in str(e), e
    else:
        raise AssertionError(level)
print("ok", rank)
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_divided_states_and_gradients(tmp_path, ranks):
    assert passes(tmp_path, ranks, SHARDED, environment={"PYTHONWARNINGS": "ignore"}).count("ok") == ranks


# Optimizers and clips whose steps need norms of whole parameters, of which level p_g_os gives each rank a slice; odd sizes are padded.
NORMS = MODEL.replace("16, 8, 12", "16, 9, 13") + """
from proa.distributed.sharding import group_sharded_parallel
opt, norm, flat = paddle.optimizer, nn.ClipGradByNorm(0.1), lambda p: p.ndim < 2
for make in (lambda net: opt.Lamb(0.01, epsilon=1e-4, parameters=net.parameters(), exclude_from_weight_decay_fn=flat),
             lambda net: opt.Lamb(0.01, epsilon=1e-4, parameters=net.parameters(), lamb_weight_decay=0.0, grad_clip=clip()),
             lambda net: paddle.fluid.optimizer.LarsMomentum(1.0, 0.9, 0.05, 0.01, parameter_list=net.parameters(), grad_clip=clip()),
             lambda net: opt.Momentum(0.2, parameters=[{"params": net.parameters()[:3], "grad_clip": norm}, {"params": net.parameters()[3:]}]),
             lambda net: opt.AdamW(0.01, epsilon=1e-4, parameters=net.parameters(), lr_ratio=lambda p: 0.5 + flat(p), grad_clip=norm)):
    whole, want = alone(20, make)
    net = Whole()
    model, sharded, _ = group_sharded_parallel(net, make(net), "p_g_os", segment_size=10)
    x, y, got = paddle.to_tensor(np.split(ids, size)[rank]), paddle.to_tensor(np.split(labels, size)[rank]), []
    for _ in range(20):
        loss = model(x, y)
        loss.backward(); sharded.step(); sharded.clear_grad()
        value = loss.detach().clone()
        dist.all_reduce(value, dist.ReduceOp.AVG)
        got.append(float(value))
    np.testing.assert_allclose(got, want, rtol=1e-5)
    largest = max(float(p.abs().max()) for p in whole.parameters())
    for (name, p), q in zip(net.named_parameters(), whole.parameters()):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=0, atol=1e-5 * largest, err_msg=name)
print("ok", rank)
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_norms_of_divided_parameters_are_those_of_one_process(tmp_path, ranks):
    assert passes(tmp_path, ranks, NORMS, environment={"PYTHONWARNINGS": "ignore"}).count("ok") == ranks


MEMORY = """
from proa import _core
from proa.distributed.sharding import group_sharded_parallel
begun = _core.live_bytes()
width, layers = 508, 4  # weights and their parts fill blocks of the allocator
net = paddle.nn.Sequential(*[l for _ in range(layers) for l in (paddle.nn.Linear(width, width), paddle.nn.Tanh())])
opt = paddle.optimizer.Adam(1e-3, parameters=net.parameters())
if LEVEL == "fleet":
    from proa.distributed import fleet
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"sharding_degree": size}
    fleet.init(is_collective=True, strategy=strategy)
    model, opt = fleet.distributed_model(net), fleet.distributed_optimizer(opt)
else:
    model, opt, _ = group_sharded_parallel(net, opt, LEVEL, segment_size=width)

def step():
    model(paddle.ones([2, width])).sum().backward()
    opt.step()

step()
opt.clear_grad(False)
step()
held = _core.live_bytes() - begun
params, small = sum(4 * int(p.size) for p in net.parameters()), 4 * width * layers  # biases stay whole
first = 2 * params + 2 * params / size
want = {"fleet": first, "os": first, "os_g": params + 3 * params / size,
        "p_g_os": 4 * (params - small) / size + 4 * small}[LEVEL]
assert abs(held / want - 1) < 0.05, (LEVEL, size, held, want)
print("ok", rank, held, want)
"""


@pytest.mark.parametrize("ranks, level", [(2, "os"), (2, "os_g"), (2, "p_g_os"), (4, "fleet"), (4, "os_g"), (4, "p_g_os")])
def test_memory_of_a_rank_is_what_formulas_say(tmp_path, ranks, level):
    """Parameters, gradients and two moments, counted by the allocator after a step that kept its gradients."""
    assert passes(tmp_path, ranks, MEMORY.replace("LEVEL", repr(level))).count("ok") == ranks


RESUMED = MODEL + """
from proa.distributed.sharding import group_sharded_parallel, save_group_sharded_model
folder, level, load = sys.argv[1] + "/saved", LEVEL, LOAD
make = lambda net: paddle.optimizer.AdamW(paddle.optimizer.lr.StepDecay(0.01, 3), parameters=net.parameters(), grad_clip=clip())
whole, want = Whole(), []
opt = make(whole)
for step in range(12):
    loss = whole(paddle.to_tensor(ids), paddle.to_tensor(labels))
    loss.backward(); opt.step(); opt.clear_grad(); opt._learning_rate.step(); want.append(float(loss))
with paddle.utils.unique_name.guard():  # a job's process makes one net
    net = Whole()
    opt = make(net)
if load and load != "after":
    net.set_state_dict(paddle.load(folder + "/model.pdmodel"))
    opt.set_state_dict(paddle.load(folder + "/model.pdopt"))
model, opt, _ = group_sharded_parallel(net, opt, level, segment_size=10)
if load == "after":
    model.set_state_dict(paddle.load(folder + "/model.pdmodel"))
    opt.set_state_dict(paddle.load(folder + "/model.pdopt"))
x, y, got = paddle.to_tensor(np.split(ids, size)[rank]), paddle.to_tensor(np.split(labels, size)[rank]), []
for step in range(6):
    loss = model(x, y)
    loss.backward(); opt.step(); opt.clear_grad(); opt._learning_rate.step()
    value = loss.detach().clone()
    dist.all_reduce(value, dist.ReduceOp.AVG)
    got.append(float(value))
np.testing.assert_allclose(got, want[6:] if load else want[:6], rtol=2e-5)
if not load:
    save_group_sharded_model(model, folder, opt)
print("ok", rank)
"""


@pytest.mark.parametrize("level", ["os", "os_g", "p_g_os"])
def test_a_sharded_training_goes_on_on_other_numbers_of_ranks(tmp_path, level):
    """Four ranks save; four, two, and one go on, with states loaded before or after the division."""
    body = RESUMED.replace("LEVEL", repr(level))
    assert passes(tmp_path, 4, body.replace("LOAD", "None"), environment={"PYTHONWARNINGS": "ignore"}).count("ok") == 4
    for ranks, load in ((4, "after"), (2, "before"), (1, "before")):
        logs = passes(tmp_path, ranks, body.replace("LOAD", repr(load)), environment={"PYTHONWARNINGS": "ignore"})
        assert logs.count("ok") >= ranks


THREE = MODEL + """
from proa.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer, SharedLayerDesc

class Table(nn.Layer):
    def __init__(self, whole):
        super().__init__()
        self.whole = whole
        self.inner = nn.Embedding(V, D) if whole else VocabParallelEmbedding(V, D)
        self.inner.weight.set_value(W["table"] if whole else np.split(W["table"], n)[r])
        self.weight = self.inner.weight
    def forward(self, x):
        return self.inner(x)

class Block(nn.Layer):
    def __init__(self, at, whole):
        super().__init__()
        part = (lambda a, axis: a) if whole else (lambda a, axis: np.split(a, n, axis)[r])
        self.up = nn.Linear(D, H) if whole else ColumnParallelLinear(D, H, has_bias=True, gather_output=False)
        self.down = nn.Linear(H, D) if whole else RowParallelLinear(H, D, input_is_parallel=True)
        self.norm = nn.LayerNorm(D)
        for p, v in ((self.up.weight, part(W["up"], 1)), (self.up.bias, part(W["upb"], 0)), (self.down.weight, part(W["down"], 0)),
                     (self.down.bias, W["downb"])):
            p.set_value(v * (1 + 0.1 * at))
    def forward(self, x):
        return self.norm(x + self.down(F.gelu(self.up(x))))

def scores(table, x):
    if not table.whole:
        x = paddle._core.mp_identity(x, group=hcg.get_model_parallel_group().id)
    return paddle.matmul(x, table.weight, transpose_y=True)

def make(net):
    return paddle.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=clip())

class Tied(nn.Layer):
    def __init__(self):
        super().__init__()
        self.table, self.blocks = Table(True), nn.LayerList([Block(i, True) for i in range(4)])
    def forward(self, x):
        x = self.table(x)
        for block in self.blocks:
            x = block(x)
        return scores(self.table, x)

net = Tied(); opt, want = make(net), []
x, y = paddle.to_tensor(ids), paddle.to_tensor(labels)
for _ in range(STEPS):
    loss = F.cross_entropy(net(x), y.unsqueeze(-1)); loss.backward(); opt.step(); opt.clear_grad(); want.append(float(loss))
strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {"dp_degree": 2, "mp_degree": 2, "pp_degree": 2}
strategy.pipeline_configs = {"accumulate_steps": 2, "micro_batch_size": 2, "schedule_mode": "1F1B"}
fleet.init(is_collective=True, strategy=strategy)
hcg = fleet.get_hybrid_communicate_group()
model_parallel_random_seed(7)
r, n = hcg.get_model_parallel_rank(), hcg.get_model_parallel_world_size()
cross = ParallelCrossEntropy()
layers = PipelineLayer([SharedLayerDesc("table", Table, None, "weight", False), *[LayerDesc(Block, i, False) for i in range(4)],
                        SharedLayerDesc("table", Table, scores, "weight", False)], topology=hcg.topology(),
                       loss_fn=lambda logits, labels: cross(logits, labels.unsqueeze(-1)).mean())
model, opt = fleet.distributed_model(layers), fleet.distributed_optimizer(make(layers))
part = lambda a: paddle.to_tensor(np.split(a, 2)[hcg.get_data_parallel_rank()])
got = []
for _ in range(STEPS):
    loss = model.train_batch([part(ids), part(labels)], opt)
    dist.all_reduce(loss, dist.ReduceOp.AVG, hcg.get_data_parallel_group())
    got.append(float(loss))
np.testing.assert_allclose(got, want, rtol=1e-5)
whole = dict(net.named_parameters())
for name, p in layers.named_parameters():
    at, rest = name.split(".", 1)
    q = (net.table if at in ("0", "5") else net.blocks[int(at) - 1]).state_dict()[rest].numpy()
    if getattr(p, "split_axis", None) is not None:
        q = np.split(q, n, p.split_axis)[r]
    np.testing.assert_allclose(p.numpy(), q, rtol=1e-4, atol=1e-5, err_msg=name)
print("ok", rank)
"""


def test_data_model_and_pipeline_parallel_is_one_process(tmp_path):
    """2 × 2 × 2 on eight processes, with the embedding's weight tied to the output layer across stages and divided in two."""
    assert passes(tmp_path, 8, THREE.replace("STEPS", "20"), environment={"PYTHONWARNINGS": "ignore"}, limit=400).count("ok") == 8


PIPELINE = MODEL + """
from proa.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer, SharedLayerDesc

class Table(nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([V, D])
        self.weight.set_value(W["table"])
    def forward(self, x):
        return F.embedding(x, self.weight)

class Held:
    # lives as long as the tape's node of one micro-batch in one block
    now = most = 0
    def __init__(self):
        Held.now += 1
        Held.most = max(Held.most, Held.now)
    def __del__(self):
        Held.now -= 1

class Count(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.held = Held()
        return x * 1
    @staticmethod
    def backward(ctx, grad):
        return grad

class Block(nn.Layer):
    def __init__(self, at):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(D, H), nn.Linear(H, D), nn.LayerNorm(D)
        for p, n in ((self.up.weight, "up"), (self.up.bias, "upb"), (self.down.weight, "down"), (self.down.bias, "downb")):
            p.set_value(W[n] * (1 + 0.1 * at))
    def forward(self, x):
        return self.norm(x + self.down(F.gelu(self.up(Count.apply(x)))))

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
layers = PipelineLayer(descs, topology=hcg.topology(), loss_fn=loss_fn, seg_method="layer:Block" if DEGREES["pp_degree"] * CHUNKS < 4 else "uniform",
                       recompute_interval=RECOMPUTE, num_virtual_pipeline_stages=CHUNKS)
model, opt = fleet.distributed_model(layers), fleet.distributed_optimizer(make(layers))
part = lambda a: paddle.to_tensor(np.split(a, d)[hcg.get_data_parallel_rank()])
got, Held.most = [], 0
for _ in range(12):
    loss = model.train_batch([part(ids), part(labels)], opt)
    if d > 1:
        dist.all_reduce(loss, dist.ReduceOp.AVG, hcg.get_data_parallel_group())
    got.append(float(loss))
np.testing.assert_allclose(got, want, rtol=3e-5)
from proa.distributed.fleet.meta_parallel.pipeline_schedule import most_alive
blocks = [sum(isinstance(f, Block) for f in chunk) for chunk in layers._functions]
if RECOMPUTE == 0 and len(set(blocks)) == 1:  # activations that the tape held, counted
    assert Held.now == 0 and Held.most == blocks[0] * most_alive(model.steps), (Held.now, Held.most, blocks, most_alive(model.steps))
    if CHUNKS == 1:
        assert most_alive(model.steps) == min(model.num_stages - model.stage_id, 4)
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


@pytest.mark.parametrize("ranks, degrees, schedule, every, chunks", [
    (2, {"pp_degree": 2}, "1F1B", 0, 1), (4, {"pp_degree": 4}, "1F1B", 0, 1),
    (4, {"pp_degree": 2, "dp_degree": 2}, "F-then-B", 2, 1), (2, {"pp_degree": 2}, "1F1B", 0, 4),
    (4, {"pp_degree": 4}, "1F1B", 1, 2)], ids=["pp2", "pp4", "dp2pp2-recompute", "pp2-interleaved4", "pp4-interleaved2-recompute"])
def test_pipelines_are_one_process(tmp_path, ranks, degrees, schedule, every, chunks):
    body = PIPELINE.replace("DEGREES", repr(degrees)).replace("SCHEDULE", schedule).replace("RECOMPUTE", str(every)).replace(
        "CHUNKS", str(chunks))
    if ranks > degrees["pp_degree"] or degrees["pp_degree"] == 4:
        body = body.replace("try:\n    model.train_batch", "try:\n    raise AssertionError\n    model.train_batch")
    logs = passes(tmp_path, ranks, body, environment={"PYTHONWARNINGS": "ignore"})
    assert logs.count("ok") == ranks


@pytest.mark.parametrize("chunks", [1, 2, 3])
@pytest.mark.parametrize("stages", [1, 2, 4, 7])
@pytest.mark.parametrize("micro", [1, 2, 5, 28])
def test_schedules(stages, micro, chunks):
    """Every micro-batch goes through every chunk forward once and then backward once; 1F1B holds what it promises; no stage waits
    for ever."""
    for name, schedule in SCHEDULES.items():
        if name == "1F1B" and chunks > 1 and micro % stages:
            with pytest.raises(ValueError):
                schedule(0, stages, micro, chunks)
            continue
        steps = [schedule(s, stages, micro, chunks) for s in range(stages)]
        for s, mine in enumerate(steps):
            assert sorted(mine) == sorted((k, i, c) for k in "BF" for i in range(micro) for c in range(chunks))
            if name == "1F1B":
                warm = stages - s - 1 if chunks == 1 else 2 * (stages - s - 1) + (chunks - 1) * stages
                assert most_alive(mine) == min(warm + 1, micro * chunks)
        done, at, last = set(), [0] * stages, stages * chunks - 1
        moved = True
        while moved:
            moved = False
            for s in range(stages):
                while at[s] < len(steps[s]):
                    kind, i, chunk = steps[s][at[s]]
                    part = chunk * stages + s
                    if kind == "F":
                        needs = [("F", i, part - 1)] if part else []
                    else:
                        needs = [("F", i, part)] + ([("B", i, part + 1)] if part < last else [])
                    if not done.issuperset(needs):
                        break
                    done.add((kind, i, part))
                    at[s] += 1
                    moved = True
        assert len(done) == 2 * stages * micro * chunks


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
        StrategyMessage("DistributedStrategy").merge_text(text)


def test_strategy_texts_come_back():
    message = StrategyMessage("DistributedStrategy")
    message.set("amp", True)
    message.get("recompute_configs").set("checkpoints", ['a "quoted" name', "back\\slash", "two\nlines"])
    message.get("sharding_configs").set("segment_broadcast_MB", 0.1)
    again = StrategyMessage("DistributedStrategy")
    again.merge_text("# a comment\n" + message.to_text())
    assert again.as_dict() == message.as_dict() and again.to_text() == message.to_text()
