"""Tensors on a mesh in real Paddle's CPU build and here: the same script under both, on two processes."""
import json
import os
import subprocess

import pytest

from conftest import NEEDS_PADDLE, ROOT
from launched import passes
from oracle import PYTHON

pytestmark = NEEDS_PADDLE

SCRIPT = """
import json, os, sys
import numpy as np
import paddle, paddle.distributed as dist
from paddle.distributed import Partial, Replicate, Shard
dist.init_parallel_env()
mesh, rank, found = dist.ProcessMesh([0, 1], dim_names=["x"]), dist.get_rank(), {}
x = np.arange(16.0).reshape(4, 4).astype("float32")
F = paddle.nn.functional
places = {"S0": [Shard(0)], "S1": [Shard(1)], "R": [Replicate()], "P": [Partial()]}
whole = dist.shard_tensor(x, mesh, places["R"])
OPS = {
    "add": lambda d: d + whole, "relu": F.relu, "sum": lambda d: d.sum(), "column sums": lambda d: d.sum(0), "mean": lambda d: d.mean(1),
    "matmul": lambda d: paddle.matmul(d, whole), "matmul of it": lambda d: paddle.matmul(whole, d), "softmax": lambda d: F.softmax(d),
    "reshape": lambda d: d.reshape([2, 2, 4]), "transpose": lambda d: d.transpose([1, 0]), "scaled": lambda d: d * 2,
}
for key, p in places.items():
    d = dist.shard_tensor(x, mesh, p)
    found["text " + key] = repr(d)
    found["part " + key] = d._local_value().tolist()
    found["about " + key] = [d.shape, d._local_shape, d._placements_str, d.is_dist(), d.stop_gradient, d.process_mesh.process_ids]
    for name, f in OPS.items():
        out = f(d)
        found[f"{name} {key}"] = [None if key == "P" else out._placements_str, out.numpy().tolist()]
m = dist.ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=["x", "y"])
found["mesh"] = [m.shape, m.ndim, m.size, m.process_ids, m.dim_names, m.get_dim_size("y"), m.get_mesh_with_dim("y").mesh.tolist(), m[0].process_ids,
                 m[0].dim_names, m[:, 1].process_ids, m[:, 1].dim_names, m == dist.ProcessMesh([[2, 4, 5], [0, 1, 3]]), m.contains(7)]
a = dist.DistAttr(m, ["x", None])
found["attr"] = [a.dims_mapping, a.sharding_specs, a.process_mesh == m]
found["words"] = [str(Shard(1)), str(Replicate()), str(Partial()), str(Partial(dist.ReduceType.kRedAvg)), Shard(1).is_shard(), Shard(1).is_shard(0),
                  Partial().is_partial(), Replicate().is_replicated(), Shard(0) == Shard(0), Shard(0) == Shard(1)]
found["types"] = [[k.name, k.value] for k in (dist.ReduceType.kRedSum, dist.ReduceType.kRedAvg, dist.ReduceType.kRedAll)]
net = paddle.nn.Linear(4, 4)
net.weight.set_value(x)
net.bias.set_value(x[0])
def shard(name, layer, mesh):
    layer.weight = dist.shard_tensor(layer.weight, mesh, [Shard(1)], stop_gradient=False)
dist.shard_layer(net, mesh, shard)
found["layer"] = [net.weight._placements_str, net.bias._placements_str, net.weight.stop_gradient, net.weight._local_shape]
opt = dist.shard_optimizer(paddle.optimizer.AdamW(0.1, parameters=net.parameters()))
for _ in range(3):
    loss = (net(whole) * whole).sum()
    loss.backward()
    found["gradient"] = net.weight.grad._local_value().tolist()
    opt.step()
    opt.clear_grad()
found["trained"] = net.weight._local_value().tolist()
found["made"] = dist.dtensor_from_fn(paddle.ones, mesh, [Shard(0)], [4, 4])._local_shape
s = dist.Strategy({"gradient_merge": {"enable": True, "k_steps": 2}})
found["strategy"] = [s.gradient_merge.k_steps, s.gradient_merge.avg, s.sharding.degree, s.pipeline.schedule_mode, s.fused_passes.enable]
json.dump(found, open(sys.argv[1] + f".{rank}", "w"))
"""


def near(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    return a == pytest.approx(b, rel=1e-5) if isinstance(a, float) else a == b


def test_as_paddle_does(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run([PYTHON, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", tmp_path / "paddle", script,
                    tmp_path / "theirs"], env={**env, "OMP_NUM_THREADS": "1"}, check=True, capture_output=True, timeout=120, cwd=tmp_path)
    ours = tmp_path / "ours.py"
    ours.write_text(f"import sys\nsys.path.insert(0, {str(ROOT / 'build/python')!r})\nimport proa\nproa.install_as_paddle()\n" + SCRIPT)
    passes(tmp_path, 2, ours, tmp_path / "ours")
    for rank in range(2):
        theirs, mine = (json.loads((tmp_path / f"{who}.{rank}").read_text()) for who in ("theirs", "ours"))
        for key in ("sum P", "column sums P", "mean P"):  # real Paddle reduces each process's terms and calls that Replicate
            assert near(theirs.pop(key), mine[key]) is (rank == 0)
        wrong = {key: (value, mine[key]) for key, value in theirs.items() if not near(value, mine[key])}
        assert not wrong, wrong
        assert len(theirs) > 55
