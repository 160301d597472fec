"""Faults that only several processes show: what starts equal, who joins in a collective, whose gradients a norm counts, which
groups a topology has. Numbers of whole trainings: tests/ranks/hybrid.py, of which a sample runs here."""
import pytest

from _job import passes
from test_fleet import MODEL

FLEET = """
from proa import nn
from proa.distributed import fleet
from proa.distributed.fleet.meta_parallel import (ColumnParallelLinear, LayerDesc, PipelineLayer, RowParallelLinear)
from proa.distributed.sharding import group_sharded_parallel

def begin(**degrees):
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {f"{axis}_degree": n for axis, n in degrees.items()}
    strategy.pipeline_configs = {"accumulate_steps": 2, "micro_batch_size": 2}
    fleet.init(is_collective=True, strategy=strategy)
    return fleet.get_hybrid_communicate_group()
"""
QUIET = {"PYTHONWARNINGS": "ignore"}

START = FLEET + """
hcg = begin(**DEGREES)
paddle.seed(100 + rank)
net = nn.Sequential(ColumnParallelLinear(4, 8, has_bias=True, gather_output=False), RowParallelLinear(8, 4, input_is_parallel=True))
net.add_sublayer("norm", nn.BatchNorm1D(4))
net.norm._mean.set_value(np.full([4], rank, "float32"))
before = []
dist.all_gather_object(before, [t.numpy() for t in [*net.parameters(), *net.buffers()]])
if LEVEL == "fleet":
    fleet.distributed_model(net)
else:
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    model, _, _ = group_sharded_parallel(net, opt, LEVEL, group=hcg.get_sharding_parallel_group(), segment_size=1,
                                         dp_group=hcg.get_data_parallel_group())
    if LEVEL == "p_g_os":
        model.get_all_parameters()
source = hcg.get_model_parallel_rank()  # the first rank that has this part
divided = [getattr(p, "split_axis", None) is not None for p in net.parameters()] + [False] * len(net.buffers())
for i, (tensor, own) in enumerate(zip([*net.parameters(), *net.buffers()], divided)):
    whose = source if own or LEVEL != "fleet" else 0  # fleet gives a model's ranks one start, too
    np.testing.assert_array_equal(tensor.numpy(), before[whose][i], err_msg=f"{i} {tensor.name}")
print("ok", rank)
"""


@pytest.mark.parametrize("degrees, level", [({"mp": 2, "sharding": 2}, "fleet"), ({"mp": 2, "dp": 2}, "fleet"), ({"mp": 2, "sharding": 2}, "os_g"),
                                            ({"mp": 2, "sharding": 2}, "p_g_os"), ({"mp": 2, "dp": 2}, "os")])
def test_parts_of_weights_start_equal(tmp_path, degrees, level):
    """Ranks that hold the same part of a model begin with the first one's, whatever their seeds made."""
    body = START.replace("DEGREES", repr(degrees)).replace("LEVEL", repr(level))
    assert passes(tmp_path, 4, body, environment=QUIET).count("ok") == 4


EMPTY = FLEET + """
hcg = begin(pp=2)
w = np.random.RandomState(0).uniform(-1, 1, [4, 4]).astype("float32")
x, y = np.ones([4, 4], "float32"), np.zeros([4, 4], "float32")

class Scaled(nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([4, 4])
        self.weight.set_value(w)
    def forward(self, x):
        return paddle.matmul(x, self.weight)

def loss(out, y):
    return ((out - y) ** 2).mean()

def make(params):
    clip = nn.ClipGradByGlobalNorm(0.1)
    return paddle.optimizer.Momentum(0.5, parameters=[{"params": params}] if GROUPS and params else params, grad_clip=clip)

net = Scaled(); opt, want = make(net.parameters()), []
for _ in range(5):
    value = loss(paddle.tanh(net(paddle.to_tensor(x))), paddle.to_tensor(y)); value.backward(); opt.step(); opt.clear_grad()
    want.append(float(value))
layers = PipelineLayer([paddle.assign, LayerDesc(Scaled), paddle.tanh], topology=hcg.topology(), loss_fn=loss,
                       seg_method=[0, 2, 3] if FIRST == 0 else [0, 1, 3])
assert len(layers.parameters()) == (rank == FIRST)
model, opt = fleet.distributed_model(layers), fleet.distributed_optimizer(make(layers.parameters()))
got = [float(model.train_batch([paddle.to_tensor(x), paddle.to_tensor(y)], opt)) for _ in range(5)]
np.testing.assert_allclose(got, want, rtol=1e-5)
print("ok", rank)
"""


@pytest.mark.parametrize("first, groups", [(0, False), (1, False), (0, True)])
def test_a_stage_without_parameters_joins_in_the_norm(tmp_path, first, groups):
    body = EMPTY.replace("FIRST", str(first)).replace("GROUPS", str(groups))
    assert passes(tmp_path, 2, body, environment={**QUIET, "PROA_TIMEOUT": "20"}).count("ok") == 2


UNEQUAL = FLEET + """
hcg = begin(**DEGREES)
n = max(DEGREES.values())
w = np.random.RandomState(0).uniform(-1, 1, [6, 3]).astype("float32")
ids = np.array([[0, 1], [2, 1], [4, 5], [5, 0]])

class Net(nn.Layer):
    # rank 0 uses one table, the others both; `never` is used by none
    def __init__(self):
        super().__init__()
        self.a, self.b, self.never = (nn.Embedding(6, 3, sparse=SPARSE) for _ in range(3))
        for e in (self.a, self.b, self.never):
            e.weight.set_value(w)
    def forward(self, x, both):
        out = (self.a(x) ** 2).mean()
        return out + (self.b(x) ** 2).mean() if both else out

def make(net):
    return paddle.optimizer.Momentum(0.5, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.05), weight_decay=None if SPARSE else 0.1)

whole = Net(); opt = make(whole)
for _ in range(5):
    parts = np.split(ids, n)
    loss = sum(whole(paddle.to_tensor(part), i > 0) for i, part in enumerate(parts)) / n
    loss.backward(); opt.step(); opt.clear_grad(False)
net = Net()
if LEVEL == "fleet":
    model, opt = fleet.distributed_model(net), fleet.distributed_optimizer(make(net))
else:
    model, opt, _ = group_sharded_parallel(net, make(net), LEVEL, group=hcg.get_sharding_parallel_group())
for _ in range(5):
    loss = model(paddle.to_tensor(np.split(ids, n)[rank]), rank > 0)
    loss.backward(); opt.step(); opt.clear_grad(False)
for (name, p), q in zip(net.named_parameters(), whole.parameters()):
    np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
np.testing.assert_array_equal(net.never.weight.numpy(), w)
print("ok", rank)
"""


@pytest.mark.parametrize("level", ["fleet", "os", "os_g"])
@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_that_some_ranks_have(tmp_path, level, sparse):
    """A parameter without a gradient on some ranks, dense or of rows, is updated as in one process; one that none used stays."""
    body = UNEQUAL.replace("DEGREES", "{'sharding': 2}").replace("LEVEL", repr(level)).replace("SPARSE", str(sparse))
    assert passes(tmp_path, 2, body, environment={**QUIET, "PROA_TIMEOUT": "20"}).count("ok") == 2


AXES = FLEET + """
for names, dims in ((["data", "model"], [1, 2]), (["data"], [2]), (["pipe", "model"], [2, 1])):
    topology = fleet.CommunicateTopology(names, dims)
    hcg = fleet.HybridCommunicateGroup(topology)
    for label in ("data", "model", "sharding", "sep", "pipe"):
        group = getattr(hcg, f"get_{label}_parallel_group")()
        n = dims[names.index(label)] if label in names else 1
        assert group.nranks == n == getattr(hcg, f"get_{label}_parallel_world_size")(), (names, label, group)
        assert rank in group.ranks
        assert getattr(hcg, f"get_{label}_parallel_rank")() == group.rank
        value = paddle.to_tensor([float(rank + 1)])
        dist.all_reduce(value, group=group)
        assert float(value) == (3 if n == 2 else rank + 1)
    assert hcg.get_pp_mp_parallel_group().nranks == (2 if names[-1] == "model" else 1)
    assert hcg.get_dp_sep_parallel_group().nranks == (2 if names == ["data"] else 1)
    if "pipe" not in names:
        assert hcg.get_p2p_groups() == (rank, rank)
for wrong in (dict(names=["data"], dims=[3]),):
    try:
        fleet.HybridCommunicateGroup(fleet.CommunicateTopology(*wrong.values()))
    except ValueError as e:
        assert "3 ranks" in str(e)
    else:
        raise AssertionError("no error")
strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {"mp_degree": 2, "order": ["dp", "pp"]}
try:
    fleet.init(is_collective=True, strategy=strategy)
except ValueError as e:
    assert "order" in str(e) and "mp" in str(e)
else:
    raise AssertionError("no error")
"""


def test_an_axis_that_a_topology_lacks_is_this_rank_alone(tmp_path):
    passes(tmp_path, 2, AXES, environment=QUIET)


LEVELS = MODEL + """
from proa.distributed.sharding import group_sharded_parallel
def make(net):
    clip = nn.CLIP(0.1)
    return {"adamw": lambda: paddle.optimizer.AdamW(0.01, epsilon=1e-4, parameters=net.parameters(), grad_clip=clip),
            "lamb": lambda: paddle.optimizer.Lamb(0.01, epsilon=1e-4, parameters=net.parameters(), grad_clip=clip,
                                                  exclude_from_weight_decay_fn=lambda p: p.ndim < 2),
            "lars": lambda: paddle.fluid.optimizer.LarsMomentum(1.0, 0.9, 0.05, 0.01, parameter_list=net.parameters(), grad_clip=clip)}[KIND]()
whole, want = alone(10, make)
strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {axis + "_degree": 2 for axis in AXES}
fleet.init(is_collective=True, strategy=strategy)
hcg = fleet.get_hybrid_communicate_group()
model_parallel_random_seed(7)
net = Divided(hcg) if "mp" in AXES else Whole()
if "dp" in AXES:
    for p in net.parameters():  # copies begin otherwise
        p.set_value(p + hcg.get_data_parallel_rank())
model, opt, _ = group_sharded_parallel(net, make(net), LEVEL, group=hcg.get_sharding_parallel_group(), segment_size=10,
                                       dp_group=hcg.get_data_parallel_group())
d = hcg.get_data_parallel_rank() * 2 + hcg.get_sharding_parallel_rank()
n = hcg.get_data_parallel_world_size() * 2
x, y, got = paddle.to_tensor(np.split(ids, n)[d]), paddle.to_tensor(np.split(labels, n)[d]), []
for step in range(10):
    loss = model(x, y)
    loss.backward()
    opt.step() if step % 2 else opt.minimize(loss)
    opt.clear_grad()
    value = loss.detach().clone()
    dist.all_reduce(value, dist.ReduceOp.AVG)
    got.append(float(value))
np.testing.assert_allclose(got, want, rtol=1e-5)
if LEVEL == "p_g_os":
    model.get_all_parameters()
r, largest = hcg.get_model_parallel_rank(), max(float(p.abs().max()) for p in whole.parameters())
for (name, p), q in zip(net.named_parameters(), whole.parameters()):
    q = q.numpy() if getattr(p, "split_axis", None) is None else np.split(q.numpy(), 2, p.split_axis)[r]
    np.testing.assert_allclose(p.numpy(), q, rtol=0, atol=1e-5 * largest, err_msg=name)
print("ok", rank)
"""


@pytest.mark.parametrize("axes, level, kind, clip", [
    (("mp", "sharding"), "os", "adamw", "ClipGradByGlobalNorm"), (("mp", "sharding"), "os_g", "lamb", "ClipGradByGlobalNorm"),
    (("mp", "sharding"), "p_g_os", "adamw", "ClipGradByGlobalNorm"), (("mp", "sharding"), "os_g", "adamw", "ClipGradByNorm"),
    (("mp", "sharding"), "p_g_os", "lamb", "ClipGradByNorm"), (("mp", "sharding"), "p_g_os", "lars", "ClipGradByGlobalNorm"),
    (("dp", "sharding"), "os_g", "adamw", "ClipGradByGlobalNorm"), (("dp", "sharding"), "p_g_os", "lars", "ClipGradByNorm"),
    (("dp", "sharding"), "p_g_os", "lamb", "ClipGradByGlobalNorm")])
def test_levels_with_tensor_parallelism_and_copies(tmp_path, axes, level, kind, clip):
    """Norms are over all ranks of the model, each parameter counted once; groups of copies average what their owners have."""
    body = LEVELS.replace("AXES", repr(axes)).replace("LEVEL", repr(level)).replace("CLIP", clip).replace("KIND", repr(kind))
    assert passes(tmp_path, 4, body, environment=QUIET).count("ok") == 4


INPUTS = FLEET + """
hcg = begin(mp=2)

class Nested(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
    def forward(self, pair, named):
        self.seen = [pair[0], pair[1][0], named["a"]]
        return self.linear(pair[0])

net = Nested()
given = [paddle.full([1, 2], float(rank + i)) for i in range(3)]
fleet.distributed_model(net)([given[0], (given[1], "text")], named={"a": given[2], "b": None})
assert [float(t[0, 0]) for t in net.seen] == [0, 1, 2], net.seen
print("ok", rank)
"""


def test_inputs_in_containers_are_the_first_rank_s(tmp_path):
    assert passes(tmp_path, 2, INPUTS, environment=QUIET).count("ok") == 2


REFUSED = FLEET + """
def refused(kind, words, call):
    try:
        call()
    except kind as e:
        assert all(word in str(e) for word in words), e
    else:
        raise AssertionError(f"no error that names {words}")

def sgd(net):
    return paddle.optimizer.SGD(0.1, parameters=net.parameters())

hcg = begin(mp=2)
net = nn.Sequential(ColumnParallelLinear(4, 8, has_bias=True))
refused(ValueError, ["dp_group", "mp_degree"], lambda: group_sharded_parallel(net, sgd(net), "os", group=hcg.get_sharding_parallel_group(),
                                                                              dp_group=dist.get_group(0)))
refused(ValueError, ["os_g", "fleet.distributed_optimizer"], lambda: group_sharded_parallel(net, fleet.distributed_optimizer(sgd(net)), "os_g"))
hcg = begin(pp=2)
layers = PipelineLayer([LayerDesc(nn.Linear, 4, 4), LayerDesc(nn.Linear, 4, 4)], topology=hcg.topology())
layers.add_sublayer("norm", nn.SyncBatchNorm(4))
refused(ValueError, ["SyncBatchNorm", "pp_degree"], lambda: fleet.distributed_model(layers))
other = PipelineLayer([nn.Linear(4, 4), nn.Linear(4, 4)], topology=fleet.CommunicateTopology(["pipe", "model"], [1, 2]))
refused(ValueError, ["topology", "pp_degree"], lambda: fleet.distributed_model(other))
refused(ValueError, ["p_g_os", "pp_degree"], lambda: group_sharded_parallel(layers, sgd(layers), "p_g_os"))
clip = nn.ClipGradByGlobalNorm(0.1)
groups = [{"params": [p]} for p in layers.parameters()[:1 + rank]]  # each takes a norm over the stages
refused(ValueError, [f"{1 + rank} here, [1, 2]", "pp_degree", "empty"],
        lambda: fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, parameters=groups, grad_clip=clip)))
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, parameters=[*groups, {"params": []}][:2], grad_clip=clip))
"""


SCALED = FLEET + """
from proa.amp.auto_cast import allow_on_cpu
allow_on_cpu("float16")  # a scaler that is on
hcg = begin(mp=2, pp=2)
w = np.random.RandomState(0).uniform(-1, 1, [4, 4]).astype("float32")
x, y = np.ones([4, 4], "float32"), np.zeros([4, 4], "float32")
layers = PipelineLayer([LayerDesc(nn.Linear, 4, 4), LayerDesc(nn.Linear, 4, 4)], num_stages=2, loss_fn=lambda out, y: ((out - y) ** 2).mean())
assert layers._stage_id == hcg.get_stage_id() == rank // 2  # fleet's topology, not one of its own
layers.parameters()[0].set_value(w)
opt = paddle.optimizer.SGD(0.1, parameters=layers.parameters())
model, opt = fleet.distributed_model(layers), fleet.distributed_optimizer(opt)
scaler = fleet.distributed_scaler(paddle.amp.GradScaler())
with paddle.amp.auto_cast(dtype="bfloat16"):  # in which a scaler is of no use: it turns itself off
    losses = [float(model.train_batch([paddle.to_tensor(x), paddle.to_tensor(y)], opt, scaler=scaler)) for _ in range(4)]
assert not scaler.is_enable() and losses[3] < losses[0]
print("ok", rank)
"""


def test_a_scaler_turns_off_on_all_stages(tmp_path):
    assert passes(tmp_path, 4, SCALED, environment={**QUIET, "PROA_TIMEOUT": "20"}).count("ok") == 4


def test_what_does_not_go_together_names_both(tmp_path):
    passes(tmp_path, 2, REFUSED, environment=QUIET)
