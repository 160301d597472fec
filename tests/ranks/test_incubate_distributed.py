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


def test_tools_for_programs(tmp_path):
    import types

    import numpy as np

    from oracle import ask
    from proa.fluid.io import save_inference_model
    from proa.incubate.distributed.fleet import utils
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            x = paddle.static.data("x", [None, 3])
            y = paddle.static.nn.fc(x, 2)
        exe = paddle.static.Executor()
        exe.run(startup)
        utils.save_program(main, str(tmp_path / "ours"))
        ask("-c", "import sys, paddle\npaddle.enable_static()\nfrom paddle.incubate.distributed.fleet import utils\nfolder = sys.argv[1]\n"
            "p = utils.load_program(folder + '/ours')\nassert [o.type for o in p.global_block().ops] == ['matmul_v2', 'elementwise_add']\n"
            "utils.save_program(p, folder + '/theirs')", str(tmp_path))
        again = utils.load_program(str(tmp_path / "theirs"))
        assert [op.type for op in again.global_block().ops] == ["matmul_v2", "elementwise_add"]
        utils.parse_program(main, str(tmp_path))
        assert (tmp_path / "ops.log").read_text().startswith("ops:\n{'type': 'matmul_v2', 'input_arg_names': \"['x', 'fc_")
        assert len((tmp_path / "vars_persistable.log").read_text().splitlines()) == 3
        utils.graphviz(main.global_block(), str(tmp_path))
        assert 'label="matmul_v2", shape=box' in (tmp_path / "debug.dot").read_text()
        assert utils.check_pruned_program_vars(main, main.clone(for_test=True))
        other = paddle.static.Program()
        with paddle.static.program_guard(other, startup):
            paddle.static.create_parameter([3, 5], "float32", name=main.all_parameters()[0].name)
        with pytest.warns(UserWarning, match=r"3, 5"):
            assert not utils.check_pruned_program_vars(main, other)
        save_inference_model(str(tmp_path / "model"), ["x"], [y], exe, main)
        np.savetxt(tmp_path / "x.txt", np.ones([2, 3]))
        feed = types.SimpleNamespace(feeded_vars_names=["x"], feeded_vars_dims=[3], feeded_vars_types=["float32"],
                                     feeded_vars_filelist=[str(tmp_path / "x.txt")])
        fetch = types.SimpleNamespace(fetch_vars_names=None)
        got, = utils.check_saved_vars_try_dump(str(tmp_path / "model"), "__model__", False, feed, fetch, 2, "__params__")
        np.testing.assert_array_equal(got, exe.run(main, {"x": np.ones([2, 3], "float32")}, [y])[0])
        feed.feeded_vars_filelist = None
        assert utils.check_saved_vars_try_dump(str(tmp_path / "model"), "__model__", False, feed, fetch, 4, "__params__")[0].shape == (4, 2)
        feed.feeded_vars_dims = [5]
        with pytest.raises(RuntimeError, match="shape"):
            utils.check_saved_vars_try_dump(str(tmp_path / "model"), "__model__", False, feed, fetch, 2, "__params__")
        with pytest.raises(NotImplementedError, match="is_text"):
            utils.save_program(main, str(tmp_path / "text"), is_text=True)
    finally:
        paddle.disable_static()
