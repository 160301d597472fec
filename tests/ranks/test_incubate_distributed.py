"""paddle.incubate.distributed over two processes: recompute with activations that ranks share, states that are gathered, files for
inference on meshes; recompute of tensors on a mesh."""
import pickle

import pytest

import proa as paddle
from _job import passes
from proa.distributed import InMemoryDataset

RECOMPUTE = """
from proa.distributed import Shard, shard_tensor
from proa.distributed.fleet.utils import recompute
from proa.incubate.distributed.fleet import recompute_hybrid, recompute_sequential
paddle.seed(4)
net = paddle.nn.Sequential(*(paddle.nn.Linear(4, 4) for _ in range(4)))
x = np.random.RandomState(0).uniform(-1, 1, [6, 4]).astype("float32")
def gradients(run, x):
    x.stop_gradient = False
    for p in net.parameters():
        p.clear_gradient(False)
    out = run(x)
    (out * out).sum().backward()
    return [out.numpy(), x.grad.numpy(), *(p.grad.numpy() for p in net.parameters())]
want = gradients(net, paddle.to_tensor(x))
for run in (lambda t: recompute_hybrid({"mp_group": dist.get_group(0), "partition": True, "offload": True}, net, t),
            lambda t: recompute_hybrid({"mp_group": dist.get_group(0)}, net, t),
            lambda t: recompute_sequential({"segments": 2}, net, t)):
    for a, b in zip(gradients(run, paddle.to_tensor(x)), want):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
try:
    recompute_hybrid({}, net, paddle.to_tensor(x))
except ValueError as e:
    assert "mp_group" in str(e)
mesh = dist.ProcessMesh([0, 1])
dist.shard_layer(net, mesh)
got = gradients(lambda t: recompute(net, t), shard_tensor(x, mesh, [Shard(0)]))
for a, b in zip(got, want):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
paddle.seed(rank)
drawn = shard_tensor(np.ones([4, 8], "float32"), mesh, [Shard(0)])
values = []
with paddle.no_grad():
    drawn.uniform_(0.0, 1.0)
dist.all_gather_object(values, [drawn.numpy().tolist(), paddle.bernoulli(drawn).numpy().tolist(), paddle.multinomial(drawn).numpy().tolist()])
assert values[0] == values[1]
"""

SAVE = """
from proa.distributed import fleet
from proa.incubate.distributed.utils import io
strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {"DEGREES": 2}
fleet.init(is_collective=True, strategy=strategy)
"""

GATHER = SAVE.replace("DEGREES", "sharding_degree") + """
paddle.seed(1)
net = paddle.nn.Sequential(*(paddle.nn.Linear(4, 4) for _ in range(3)))
model = fleet.distributed_model(net)
opt = fleet.distributed_optimizer(paddle.optimizer.AdamW(0.1, parameters=net.parameters()))
model(paddle.ones([2, 4])).sum().backward()
opt.step()
state = opt.state_dict()
io.save(state, sys.argv[1] + "/whole.pdopt", gather_to=[1], state_type="opt")
io.save(net.state_dict(), sys.argv[1] + "/net.pdparams", gather_to=0, state_type="params")
dist.barrier()
names = []
dist.all_gather_object(names, [k for k, v in state.items() if isinstance(v, paddle.Tensor)])
whole = io.load(sys.argv[1] + "/whole.pdopt")
assert set(names[0]) | set(names[1]) <= set(whole) and all(whole[k].numpy().tolist() == state[k].numpy().tolist() for k in names[rank])
assert sorted(io.load(sys.argv[1] + "/net.pdparams", place="cpu")) == sorted(net.state_dict())
try:
    io.save(state, sys.argv[1] + "/none.pdopt", gather_to=[0])
except ValueError as e:
    assert "state_type" in str(e)
"""

AUTO = SAVE.replace("DEGREES", "mp_degree") + """
net = paddle.nn.Sequential(fleet.meta_parallel.ColumnParallelLinear(4, 8, has_bias=True, gather_output=False),
                           fleet.meta_parallel.RowParallelLinear(8, 4, has_bias=True, input_is_parallel=True))
io.save_for_auto_inference(sys.argv[1] + "/model", net)
"""


def test_recompute(tmp_path):
    passes(tmp_path, 2, RECOMPUTE)


def test_states_are_gathered(tmp_path):
    passes(tmp_path, 2, GATHER)


def test_files_for_inference_on_meshes(tmp_path):
    passes(tmp_path, 2, AUTO)
    for rank in range(2):
        attrs = pickle.loads((tmp_path / f"model_dist{rank}.pdattr").read_bytes())
        state = paddle.load(str(tmp_path / f"model_dist{rank}.pdparams"))
        assert sorted(state) == sorted(attrs) and len(attrs) == 4
        assert sorted((tuple(state[k].shape), tuple(a["dims_mapping"])) for k, a in attrs.items()) == [
            ((4,), (-1,)), ((4,), (1,)), ((4, 4), (-1, 1)), ((4, 4), (1, -1))]
        assert all(a["process_shape"] == [1, 2] and a["process_group"] == [0, 1] for a in attrs.values())


def test_dates():
    data = InMemoryDataset()
    data.set_date("20211111")
    with pytest.raises(ValueError, match="YYYYMMDD"):
        data.set_date("soon")
