"""Groups of processes whose tensors are on GPUs (emulated, unless PROA_GPU says that there are some): NCCL, or its stand-in,
carries their calls without copies through the host. Without a GPU a rank each, PROA_GPU=1 runs none of it."""
import os
import subprocess
import sys
import textwrap

import pytest

import launched
from conftest import BUILD
from test_devices import plugin_of

pytestmark = [pytest.mark.skipif(plugin_of("gpu:0") is None, reason="gpu:0: its plug-in is not built here"),
              pytest.mark.skipif(bool(os.environ.get("PROA_GPU")), reason="needs a GPU for each rank")]

SETUP = """
import os, sys, time
import numpy as np
import proa as paddle
import proa.distributed as dist
from proa import _core
_core.load_devices(sys.argv[1])
_core.set_flag("device_fallback", "1")
_core.set_device("gpu:0")
dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()

def count():
    return _core.device_property("gpu:0", "communications")

def tensor(a, dtype):
    return paddle.cast(paddle.to_tensor(np.asarray(a, "float64")), dtype)

def same(t, want, what):
    assert "gpu" in str(t.place), (what, t.place)
    np.testing.assert_array_equal(paddle.cast(t, "float64").numpy(), np.asarray(want, "float64"), err_msg=str(what))
"""


def written(tmp_path, body):
    script = tmp_path / "script.py"
    script.write_text(SETUP + textwrap.dedent(body))
    return script


def start(tmp_path, ranks, body, **environment):
    env = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "PROA_TIMEOUT": "60", "OMP_NUM_THREADS": "1", **environment}
    return subprocess.Popen([sys.executable, "-m", "proa.distributed.launch", "--nproc_per_node", str(ranks), "--log_dir",
                             str(tmp_path / "log"), str(written(tmp_path, body)), str(plugin_of("gpu:0"))], env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def passes(tmp_path, ranks, body, **environment):
    return launched.passes(tmp_path, ranks, written(tmp_path, body), plugin_of("gpu:0"), environment=environment)


# Small integers: sums and products of a few are exact in every dtype.
COLLECTIVES = """
DTYPES = ["int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
fold = {"SUM": sum, "MAX": lambda v: np.max(v, 0), "MIN": lambda v: np.min(v, 0), "PROD": lambda v: np.prod(v, 0),
        "AVG": lambda v: sum(v) / len(v)}
pair = dist.new_group([size - 2, size - 1])

def draw(r, *shape):
    return np.random.RandomState(r).randint(1, 4, shape).astype("float64")

def check(group, dtype, sync):
    n, me, every = group.nranks, group.rank, list(range(group.nranks))
    ranks, drawn = group.ranks, [draw(r, 2 * n, 3) for r in range(n)]
    kw = dict(group=group, sync_op=sync)

    def run(call, *args, **more):
        before = count()
        task = call(*args, **kw, **more)
        if not sync:
            task.wait()
        assert count() == before + 1, (call.__name__, dtype, "went through the host")

    for op in fold:
        if op == "AVG" and "float" not in dtype:
            continue
        xs = [x * n for x in drawn] if op == "AVG" else drawn
        want, number = fold[op](xs), getattr(dist.ReduceOp, op)
        t = tensor(xs[me], dtype)
        run(dist.all_reduce, t, number)
        same(t, want, ("all_reduce", op, dtype))
        t = tensor(xs[me], dtype)
        run(dist.reduce, t, ranks[-1], number)
        same(t, want if me == n - 1 else xs[me], ("reduce", op, dtype))
        out = tensor(np.zeros([2, 3]), dtype)
        run(dist.reduce_scatter, out, [tensor(p, dtype) for p in np.split(xs[me], n)], number)
        same(out, np.split(want, n)[me], ("reduce_scatter", op, dtype))
    xs = drawn
    t = tensor(xs[me], dtype)
    run(dist.broadcast, t, ranks[-1])
    same(t, xs[-1], ("broadcast", dtype))
    parts = []
    run(dist.all_gather, parts, tensor(xs[me], dtype))
    for p, x in zip(parts, xs):
        same(p, x, ("all_gather", dtype))
    out = tensor(np.zeros([2, 3]), dtype)
    run(dist.scatter, out, [tensor(p, dtype) for p in np.split(xs[0], n)] if me == 0 else None, ranks[0])
    same(out, np.split(xs[0], n)[me], ("scatter", dtype))
    came = []
    run(dist.alltoall, [tensor(p, dtype) for p in np.split(xs[me], n)], came)
    for r, p in enumerate(came):
        same(p, np.split(xs[r], n)[me], ("alltoall", dtype))
    column = tensor(xs[me], dtype).t()  # strided: communicated through a copy on the device
    run(dist.all_reduce, column)
    same(column, sum(xs).T, ("strided", dtype))
    got = tensor(np.zeros([2 * n, 3]), dtype)
    tasks = [dist.isend(tensor(xs[me], dtype), ranks[(me + 1) % n], group), dist.irecv(got, ranks[me - 1], group)]
    for task in tasks:
        task.wait()
    same(got, xs[me - 1], ("send and recv", dtype))

for group in (dist.get_group(0), pair):
    for dtype in DTYPES:
        for sync in (True, False):
            if group.rank >= 0:
                check(group, dtype, sync)
# NCCL has no bool, and no averages of integers: those go through the host.
t, before = paddle.to_tensor([rank == 0, False]), count()
dist.all_reduce(t, dist.ReduceOp.MAX)
assert t.numpy().tolist() == [True, False] and count() == before
t = paddle.zeros([0], "float32")
dist.all_reduce(t)
# Counts of bytes that differ by rank.
sent, came = [rank + 1] * size, [r + 1 for r in range(size)]
out = paddle.zeros([sum(came)], "int64")
dist.alltoall_single(paddle.full([sum(sent)], rank, "int64"), out, sent, came)
assert out.numpy().tolist() == [r for r in range(size) for _ in range(r + 1)]
dist.barrier()
"""


@pytest.mark.parametrize("ranks, late", [(2, "copies"), (2, "compute"), (3, "copies")])
def test_every_collective_and_dtype(tmp_path, ranks, late):
    passes(tmp_path, ranks, COLLECTIVES, PROA_EMULATE_LATE=late)


OPS = """
def draw(seed, *shape):
    return np.random.RandomState(seed).randint(-4, 5, shape).astype("float32")

n, me, every = size, rank, range(size)
xs = [draw(r, 2 * n, 3) for r in every]
total, rows = sum(xs), lambda a, r: a[2 * r:2 * r + 2]

def check(name, f, want, back):
    before = count()
    x = paddle.to_tensor(xs[me], stop_gradient=False)
    out = f(x)
    same(out, want[me], name)
    ws = [draw(90 + r, *want[r].shape) for r in every]
    (out * paddle.to_tensor(ws[me])).sum().backward()
    same(x.grad, back(ws)[me], name + " gradient")
    assert count() >= before + 1, name + " went through the host"

check("all_reduce", _core.all_reduce, [total] * n, lambda w: [sum(w)] * n)
check("reduce_to", lambda x: _core.reduce_to(x, dst=n - 1), xs[:-1] + [total], lambda w: [w[-1]] * n)
check("broadcast", lambda x: _core.broadcast(x, src=n - 1), [xs[-1]] * n, lambda w: [np.zeros_like(w[0])] * (n - 1) + [sum(w)])
check("all_gather", _core.all_gather, [np.concatenate(xs)] * n, lambda w: np.split(sum(w), n))
check("reduce_scatter", _core.reduce_scatter, [rows(total, r) for r in every], lambda w: [np.concatenate(w)] * n)
check("scatter_from", lambda x: _core.scatter_from(x, src=0), [rows(xs[0], r) for r in every],
      lambda w: [np.concatenate(w)] + [np.zeros_like(xs[0])] * (n - 1))
check("all_to_all", _core.all_to_all, [np.concatenate([rows(x, r) for x in xs]) for r in every],
      lambda w: [np.concatenate([rows(v, r) for v in w]) for r in every])
check("mp_all_reduce", _core.mp_all_reduce, [total] * n, lambda w: w)
if rank == 0:
    _core.p2p_send(paddle.to_tensor(xs[0]), 1)
else:
    same(_core.p2p_recv(0, xs[0].shape, "float32"), xs[0], "p2p")

@paddle.jit.to_static
def step(x):
    y = x * 2
    dist.all_reduce(y)
    return y + 1

for _ in range(3):
    same(step(paddle.to_tensor(xs[me])), 2 * total + 1, "to_static")
"""


def test_ops_and_gradients(tmp_path):
    passes(tmp_path, 2, OPS)


TRAINING = """
def train(device, parallel):
    _core.set_device(device)
    paddle.seed(5)
    net = paddle.nn.Sequential(paddle.nn.Linear(6, 16), paddle.nn.Tanh(), paddle.nn.Linear(16, 2))
    if parallel:
        net = paddle.DataParallel(net, comm_buffer_size=1, last_comm_buffer_size=1)
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    for i in range(5):
        rows = np.random.RandomState(i).standard_normal((4 * size, 6)).astype("float32")
        x = paddle.to_tensor(rows[4 * rank:4 * rank + 4] if parallel else rows)
        (net(x) ** 2).mean().backward()
        opt.step()
        opt.clear_grad()
    return [p.numpy() for p in net.parameters()]

before = count()
got = train("gpu:0", True)
assert count() > before, "gradients went through the host"
for a, b in zip(got, train("cpu", False)):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
"""


def test_data_parallel(tmp_path):
    passes(tmp_path, 2, TRAINING)


def test_ranks_that_share_a_gpu_go_through_the_host(tmp_path):
    passes(tmp_path, 2, """
        t = tensor([rank + 1.0], "float32")
        dist.all_reduce(t)
        same(t, [3.0], "sum")
        assert count() == 0
        """, PROA_EMULATE_IDENTITY="one GPU")


def ends(tmp_path, body, **environment):
    """Rank 0's error in a job whose rank 1 does something else, and the seconds that it took."""
    body = textwrap.dedent("""
        t = tensor([1.0], "float32")
        dist.all_reduce(t)
        """) + textwrap.dedent(body)
    process = start(tmp_path, 2, body, **environment)
    process.communicate(timeout=120)
    return (tmp_path / "log/workerlog.0").read_text()


FAILS = """
if rank == 0:
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher ends it when rank 1 has failed
    began = time.monotonic()
    try:
        dist.all_reduce(t)
        print("no error")
    except (RuntimeError, TimeoutError, ValueError) as e:
        print(f"{type(e).__name__} after {time.monotonic() - began:.1f} s: {e}", flush=True)
    try:
        dist.all_reduce(t)
    except (RuntimeError, ValueError) as e:
        print("then:", e, flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize("how", ["", "notices"])
def test_a_rank_that_dies(tmp_path, how):
    said = ends(tmp_path, FAILS + "os.kill(os.getpid(), 9)\n", PROA_EMULATE_NCCL=how)
    assert "RuntimeError after" in said and "rank 1 has died" in said and "then:" in said, said


def test_a_rank_that_does_not_come(tmp_path):
    said = ends(tmp_path, FAILS + "time.sleep(60)\n", PROA_TIMEOUT="4")
    assert "TimeoutError after 4" in said and "these ranks have not called it: 1" in said, said


def test_calls_that_differ(tmp_path):
    said = ends(tmp_path, FAILS + "dist.broadcast(paddle.zeros([1000000]), 0)\n")
    assert "ValueError" in said and "rank 0 calls all_reduce" in said and "rank 1 calls broadcast" in said, said


def test_a_rank_with_its_tensor_on_the_host(tmp_path):
    body = """
        t = tensor([1.0], "float32") if rank == 0 else _core.to_device(tensor([1.0], "float32"), "cpu")
        try:
            dist.all_reduce(t)
        except (RuntimeError, TimeoutError) as e:
            print(type(e).__name__, e, flush=True)
        time.sleep(4 * rank)  # a rank that has ended would be what rank 0 tells of
        os._exit(0)
        """
    process = start(tmp_path, 2, body, PROA_TIMEOUT="4")
    process.communicate(timeout=120)
    said = (tmp_path / "log/workerlog.0").read_text()
    assert "TimeoutError" in said and "rank 1 has not called it within 4 s with a tensor on a device" in said, said
