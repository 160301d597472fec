"""paddle.distributed with real processes on this host: messages against NumPy, data parallelism against one process, the
launcher, ranks that end."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import proa as paddle
from proa.distributed import objects
from _job import passes, run, start

COLLECTIVES = """
def data(r, dtype, n=6):
    return (np.arange(n) * 3 + r * 5 - 4).astype(dtype)

for group in (None, dist.new_group([0, size - 1])):
    if group is not None and group.rank < 0:
        continue
    ranks = list(range(size)) if group is None else group.ranks
    me, n = ranks.index(rank), len(ranks)
    for dtype in ("float32", "float64", "float16", "int32", "int64", "int8", "uint8"):
        every = [data(r, dtype) for r in ranks]
        for op, f in ((dist.ReduceOp.SUM, np.sum), (dist.ReduceOp.MAX, np.max), (dist.ReduceOp.MIN, np.min),
                      (dist.ReduceOp.PROD, np.prod)):
            want = f(np.stack(every), axis=0).astype(dtype)
            x = paddle.to_tensor(data(rank, dtype))
            assert dist.all_reduce(x, op, group=group) is None
            np.testing.assert_array_equal(x.numpy(), want)
            x = paddle.to_tensor(data(rank, dtype))
            dist.reduce(x, ranks[-1], op, group=group)
            np.testing.assert_array_equal(x.numpy(), want if me == n - 1 else data(rank, dtype))
        x = paddle.to_tensor(data(rank, dtype))
        task = dist.broadcast(x, ranks[-1], group=group, sync_op=False)
        assert task.wait() and task.is_completed()
        np.testing.assert_array_equal(x.numpy(), every[-1])
        parts = []
        dist.all_gather(parts, paddle.to_tensor(data(rank, dtype)), group=group)
        np.testing.assert_array_equal(np.stack([p.numpy() for p in parts]), np.stack(every))
        wide = [data(r, dtype, 6 * n) for r in ranks]
        y = paddle.zeros([6], dtype)
        dist.scatter(y, [paddle.to_tensor(p) for p in wide[0].reshape(n, 6)] if me == 0 else None, ranks[0], group=group)
        np.testing.assert_array_equal(y.numpy(), wide[0].reshape(n, 6)[me])
        dist.reduce_scatter(y, [paddle.to_tensor(p) for p in wide[me].reshape(n, 6)], group=group)
        np.testing.assert_array_equal(y.numpy(), np.sum(np.stack(wide), 0).astype(dtype).reshape(n, 6)[me])
        came = []
        dist.alltoall([paddle.to_tensor(p) for p in wide[me].reshape(n, 6)], came, group=group)
        np.testing.assert_array_equal(np.stack([p.numpy() for p in came]), np.stack([w.reshape(n, 6)[me] for w in wide]))
        got = []
        dist.gather(paddle.to_tensor(data(rank, dtype)), got, ranks[-1], group=group)
        assert len(got) == (n if me == n - 1 else 0)
        y = paddle.zeros([6], dtype)
        tasks = [dist.isend(paddle.to_tensor(data(rank, dtype)), ranks[(me + 1) % n], group),
                 dist.irecv(y, ranks[me - 1], group)]
        [t.wait() for t in tasks]
        np.testing.assert_array_equal(y.numpy(), every[me - 1])
    dist.barrier(group)
seen = []
dist.all_gather_object(seen, {"rank": rank, "list": [1, None, (2.5, b"x" * rank)], "array": np.arange(rank)})
assert [o["rank"] for o in seen] == list(range(size)) and seen[1]["list"][2] == (2.5, b"x")
told = [rank, "mine"]
dist.broadcast_object_list(told, size - 1)
assert told == [size - 1, "mine"]
mine = []
dist.scatter_object_list(mine, list("abcdefgh"[:size]) if rank == 0 else None)
assert mine == ["abcdefgh"[rank]]
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_messages(tmp_path, ranks):
    passes(tmp_path, ranks, COLLECTIVES)


def test_random_sequences(tmp_path):
    """Every rank draws the same calls from one seed; the results are what NumPy says, whatever was queued before."""
    passes(tmp_path, 3, """
        seed = 20
        print("seed", seed)
        rng, groups = np.random.RandomState(seed), [None, dist.new_group([0, 1]), dist.new_group([1, 2])]
        waiting = []
        for step in range(3500):
            group = groups[rng.randint(3)]
            n, kind, later, root = int(rng.choice([1, 7, 300, 5000])), rng.randint(3), rng.rand() < 0.5, rng.randint(9)
            values = rng.randint(-9, 9, (size, n)).astype(rng.choice(["float32", "int64", "float16"]))
            if group is not None and group.rank < 0:
                continue
            ranks = list(range(size)) if group is None else group.ranks
            x = paddle.to_tensor(values[rank])
            if kind == 0:
                task, want = dist.all_reduce(x, group=group, sync_op=not later), values[ranks].sum(0)
            elif kind == 1:
                src = ranks[root % len(ranks)]
                task, want = dist.broadcast(x, src, group=group, sync_op=not later), values[src]
            else:
                task, want = dist.all_reduce(x, dist.ReduceOp.MAX, group=group, sync_op=not later), values[ranks].max(0)
            waiting.append((step, task, x, want))
            if len(waiting) > 20 or step == 3499:
                for at, task, x, want in waiting:
                    if task is not None:
                        task.wait()
                    assert (x.numpy() == want).all(), (seed, at)
                waiting = []
        """)


TRAINING = """
STEPS, BATCH = 50, 12

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.table = paddle.nn.Embedding(30, 8, sparse=True)
        self.lstm = paddle.nn.LSTM(8, 8)
        self.conv = paddle.nn.Conv2D(1, 4, 3, padding=1)
        self.mix = paddle.nn.Linear(32 + 8, 8)
        self.unused = paddle.nn.Linear(8, 8)
        self.sometimes = paddle.nn.Linear(8, 8)
        self.out = paddle.nn.Linear(8, 5)

    def forward(self, ids, images, extra):
        y, _ = self.lstm(self.table(ids))
        z = paddle.nn.functional.relu(self.conv(images)).mean(axis=3).reshape([ids.shape[0], -1])
        h = paddle.tanh(self.mix(paddle.concat([y[:, -1], z], axis=1)))
        h = self.mix.weight[:8].matmul(h.t()).t() + h  # used twice
        return self.out(self.sometimes(h) if extra else h)

def train(rank, size, wrap):
    paddle.seed(3)
    net = Net()
    model = wrap(net)
    opt = paddle.optimizer.Momentum(0.05, parameters=net.parameters())
    rng, losses = np.random.RandomState(5), []
    for step in range(STEPS):
        ids, images = rng.randint(0, 30, (BATCH, 4)), rng.randn(BATCH, 1, 8, 8).astype("float32")
        labels = rng.randint(0, 5, (BATCH, 1))
        own = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
        loss = paddle.nn.functional.cross_entropy(
            model(*map(paddle.to_tensor, (ids[own], images[own])), step % 3 == 0), paddle.to_tensor(labels[own]))
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(float(loss))
    return losses, {k: v.numpy() for k, v in net.state_dict().items()}
"""


def test_data_parallel_is_one_process(tmp_path):
    passes(tmp_path, 2, TRAINING + """
alone = train(0, 1, lambda net: net)
losses, weights = train(rank, size, paddle.DataParallel)
total = paddle.to_tensor(np.array(losses))
dist.all_reduce(total, dist.ReduceOp.AVG)
np.testing.assert_allclose(total.numpy(), alone[0], rtol=1e-5, atol=1e-5)
for name, value in weights.items():
    np.testing.assert_allclose(value, alone[1][name], rtol=1e-5, atol=1e-5, err_msg=name)
    mine = paddle.to_tensor(value)
    dist.broadcast(mine, 0)
    assert (mine.numpy() == value).all(), name  # the same bits on all ranks
""")


def test_no_sync_and_accumulation(tmp_path):
    passes(tmp_path, 2, """
        def gradients(quiet):
            paddle.seed(1)
            net = paddle.nn.Linear(3, 2)
            model = paddle.DataParallel(net)
            for k in range(3):
                x = paddle.to_tensor(np.full((2, 3), rank + 1.0 + k, "float32"))
                with model.no_sync() if quiet and k < 2 else paddle.set_grad_enabled(True):
                    model(x).sum().backward()
            return net.weight.grad.numpy()
        a, b = gradients(True), gradients(False)
        np.testing.assert_allclose(a, b, rtol=1e-6)
        np.testing.assert_allclose(a, np.full((3, 2), 2 * 3 * 2.5), rtol=1e-6)
        """)


def test_reducer_holds_the_gradients_once(tmp_path):
    """The buckets are the gradients' memory: at most a tenth more."""
    passes(tmp_path, 2, """
        from proa import _core
        net = paddle.nn.Sequential(*[paddle.nn.Linear(256, 256) for _ in range(12)])
        size, before = sum(4 * p.size for p in net.parameters()), _core.live_bytes()
        model, x = paddle.DataParallel(net), paddle.ones([4, 256])
        for step in range(3):
            model(x).mean().backward()
            grown = _core.live_bytes() - before
            assert size <= grown <= 1.1 * size, (step, size, grown)
        """)


def test_sync_batch_norm(tmp_path):
    passes(tmp_path, 2, """
        def net(kind):
            paddle.seed(2)
            made = paddle.nn.Sequential(paddle.nn.Conv2D(3, 4, 3), paddle.nn.BatchNorm2D(4), paddle.nn.ReLU())
            return paddle.nn.SyncBatchNorm.convert_sync_batchnorm(made) if kind else made
        x = np.random.RandomState(1).randn(6, 3, 5, 5).astype("float32") * 3 + 1
        own = slice(0, 2) if rank == 0 else slice(2, 6)  # ranks of unequal batches
        plain, synced = net(False), net(True)
        grads = []
        for made, part in ((plain, slice(0, 6)), (synced, own)):
            given = paddle.to_tensor(x[part], stop_gradient=False)
            out = made(given)
            weights = paddle.to_tensor(np.random.RandomState(3).randn(6, 4, 3, 3).astype("float32")[part])
            (out * weights).sum().backward()
            grads.append((out.numpy(), given.grad.numpy(), [p.grad for p in made.parameters() if not p.stop_gradient]))
        np.testing.assert_allclose(grads[1][0], grads[0][0][own], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(grads[1][1], grads[0][1][own], rtol=1e-3, atol=1e-4)
        for a, b in zip(grads[1][2], grads[0][2]):
            dist.all_reduce(a)
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-3)
        for name in ("_mean", "_variance"):
            np.testing.assert_allclose(getattr(synced[1], name).numpy(), getattr(plain[1], name).numpy(), rtol=1e-4)
        """)


def test_split(tmp_path):
    """Layers whose weights are divided: results and gradients of the whole layer."""
    passes(tmp_path, 2, """
        rng = np.random.RandomState(0)
        w, b, t = (rng.randn(*s).astype("float32") for s in ((6, 4), (4,), (8, 4)))
        given, ids, dy = rng.randn(5, 6).astype("float32"), rng.randint(0, 8, (5,)), rng.randn(5, 4).astype("float32")
        attr = lambda value: paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(value))
        for axis, part, bias in ((0, w[rank * 3:rank * 3 + 3], b), (1, w[:, rank * 2:rank * 2 + 2], b[rank * 2:rank * 2 + 2])):
            x = paddle.to_tensor(given, stop_gradient=False)
            out = dist.split(x, (6, 4), "linear", axis, size, True, attr(part), attr(bias))
            np.testing.assert_allclose(out.numpy(), given @ w + b, rtol=1e-4, atol=1e-5)
            (out * paddle.to_tensor(dy)).sum().backward()
            np.testing.assert_allclose(x.grad.numpy(), dy @ w.T, rtol=1e-4, atol=1e-5)
        out = dist.split(paddle.to_tensor(ids), (8, 4), "embedding", 0, size, weight_attr=attr(t[rank * 4:rank * 4 + 4]))
        np.testing.assert_allclose(out.numpy(), t[ids])
        try:
            dist.split(x, (6, 4), "linear", 0, 3)
        except ValueError as e:
            assert "num_partitions" in str(e)
        """)


def test_a_failing_rank_ends_all(tmp_path):
    code, out, err, logs = run(tmp_path, 3, """
        if rank == 1:
            raise ValueError("the cause")
        dist.barrier()
        """)
    assert code == 1 and "rank=[1]" in err and "ValueError: the cause" in err


def test_a_killed_rank_is_named(tmp_path):
    began = time.monotonic()
    code, out, err, logs = run(tmp_path, 3, """
        dist.barrier()
        if rank == 2:
            os.kill(os.getpid(), 9)
        try:
            dist.all_reduce(paddle.ones([4]))
        except RuntimeError as e:
            print("told", e, flush=True)
            import time
            time.sleep(3)
        """)
    assert code == 1 and "SIGKILL" in err, err
    assert time.monotonic() - began < 60


def test_restart_goes_on_from_the_checkpoint(tmp_path):
    body = """
        folder, victim = sys.argv[1], %d
        paddle.seed(4)
        net = paddle.nn.Linear(4, 4)
        model, path = paddle.DataParallel(net), os.path.join(folder, "checkpoint%d")
        opt = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        first = 0
        if os.path.exists(path):
            state = paddle.load(path)
            first = state["step"]
            net.set_state_dict(state["net"])
            opt.set_state_dict(state["opt"])
        for step in range(first, 12):
            x = paddle.to_tensor(np.random.RandomState(step * size + rank).randn(8, 4).astype("float32"))
            (model(x) ** 2).mean().backward()
            opt.step()
            opt.clear_grad()
            if rank == victim and step == 7 and first == 0:
                os.kill(os.getpid(), 9)
            if rank == 0 and step %% 3 == 2:
                paddle.save({"step": step + 1, "net": net.state_dict(), "opt": opt.state_dict()}, path)
            dist.barrier()
        print("weights", rank, net.weight.numpy().tobytes().hex(), flush=True)
        """
    plain = passes(tmp_path, 2, body % (-1, 0))
    code, _, err, again = run(tmp_path, 2, body % (1, 1), "--max_restart", "1")
    assert code == 0, err
    said = [line for line in plain.splitlines() if line.startswith("weights")]
    assert len(said) == 2 and [l for l in again.splitlines() if l.startswith("weights")][-1] in said
    assert again.count("start 1") == 2


def test_signal_ends_the_ranks(tmp_path):
    process = start(tmp_path, 2, """
        print("pid", os.getpid(), flush=True)
        import time
        time.sleep(600)
        """)
    pids = []
    while len(pids) < 2 and process.poll() is None:
        time.sleep(0.2)
        text = "".join(p.read_text() for p in (tmp_path / "log").glob("workerlog.*"))
        pids = [int(line.split()[1]) for line in text.splitlines() if line.startswith("pid")]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_objects_are_plain_data():
    value = [None, True, -5, 10 ** 40, 1.5, 2j, "ü", b"\0", [1], (2,), {"k": {3}}, frozenset([4])]
    assert objects.decode(objects.encode(value)) == value
    array = objects.decode(objects.encode(np.arange(6, dtype=np.int16).reshape(2, 3)))
    assert array.dtype == np.int16 and array.tolist() == [[0, 1, 2], [3, 4, 5]]
    tensor = objects.decode(objects.encode(paddle.ones([2], "bfloat16")))
    assert "bfloat16" in str(tensor.dtype) and tensor.shape == [2]
    with pytest.raises(TypeError, match="plain data"):
        objects.encode(object())
    with pytest.raises(ValueError, match="nested"):
        endless = []
        endless.append(endless)
        objects.encode(endless)
    rng = np.random.RandomState(0)
    good = objects.encode(value)
    for _ in range(2000):
        bad = bytearray(good)
        bad[rng.randint(len(bad))] = rng.randint(256)
        try:
            objects.decode(bad[:rng.randint(len(bad) + 1)])
        except (ValueError, TypeError, OverflowError, MemoryError):
            pass


def test_one_process():
    assert paddle.distributed.get_rank() == 0 and paddle.distributed.get_world_size() == 1
    x = paddle.to_tensor([1.0, 2.0])
    paddle.distributed.all_reduce(x)
    parts = []
    paddle.distributed.all_gather(parts, x)
    assert parts[0].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="no member"):
        paddle.distributed.send(x, 3)
    with pytest.raises(ValueError, match="not supported"):
        paddle.distributed.spawn(print, unknown=1)


def test_all_reduce_in_a_program(tmp_path):
    passes(tmp_path, 2, """
        paddle.enable_static()
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            y = paddle.static.data("x", [2, 3]) * 2
            dist.all_reduce(y)
            z = y + 1
        assert "c_allreduce_sum" in [op.type for op in main.global_block().ops]
        got = paddle.static.Executor().run(main, {"x": np.full((2, 3), rank + 1, "float32")}, [z])[0]
        np.testing.assert_array_equal(got, np.full((2, 3), 7, "float32"))
        """)


@pytest.mark.parametrize("ranks,cases", [(2, ["lstm/eager/float32", "transformer/to_static/float32", "resnet/static/float32"]),
                                         (4, ["transformer/static/bfloat16", "resnet/eager/float32", "lstm/static/float32"])])
def test_training_is_that_of_one_process(tmp_path, ranks, cases):
    """The others of tests/ranks, and 8 ranks, are make dist-test's."""
    script = (pathlib.Path(__file__).parent / "_training.py").read_text()
    body = script.replace("options = parser.parse_args()", f"options = parser.parse_args({['--steps', '8', *cases]})")
    assert body != script
    passes(tmp_path, ranks, body)


def test_zeroed_gradients_in_buckets(tmp_path):
    """clear_grad() leaves a bucket's memory as it is, and the next gradient is not added to it, unless somebody looks at it."""
    passes(tmp_path, 2, """
        import json
        from proa import _core
        net = paddle.nn.Sequential(*[paddle.nn.Linear(16, 16) for _ in range(3)])
        model, weight = paddle.DataParallel(net), net[0].weight
        x = paddle.ones([4, 16])

        def step():
            model(x).sum().backward()
            return weight.grad.numpy()

        want = step()
        for p in net.parameters():
            p.clear_gradient()
        np.testing.assert_allclose(step(), want, rtol=1e-6)
        for p in net.parameters():
            p.clear_gradient()
        _core.profile_start()
        model(x).sum().backward()
        _core.profile_stop()
        _core.profile_write_trace(sys.argv[1] + f"/trace{rank}")
        names = [e["name"] for e in json.load(open(sys.argv[1] + f"/trace{rank}"))["traceEvents"] if e.get("cat") == "op"]
        assert "matmul" in names and not {"add", "add_"} & set(names), names
        seen = weight.grad
        other = net[1].weight.grad.detach()
        for p in net.parameters():
            p.clear_gradient()
        assert not seen.numpy().any() and not other.numpy().any() and not weight.grad.numpy().any()
        np.testing.assert_allclose(step(), want, rtol=1e-6)
        np.testing.assert_allclose(step(), 2 * want, rtol=1e-6)
        """)


def test_streams_and_functions_of_tensor_parallelism(tmp_path):
    """Tasks, with results first, and the parts of a tensor-parallel layer: public training code imports them."""
    passes(tmp_path, 2, """
        from proa.distributed import collective, stream
        from proa.distributed.fleet.layers.mpu import mp_ops
        part = paddle.full([2], float(rank + 1))
        whole = paddle.zeros([4])
        stream.all_gather(whole, part).wait()
        assert whole.tolist() == [1, 1, 2, 2]
        assert stream.all_reduce(part, use_calc_stream=True) is None and part.tolist() == [3, 3]
        came = paddle.zeros([2])
        stream.alltoall_single(came, paddle.to_tensor([10.0 * rank, 10.0 * rank + 1])).wait()
        assert came.tolist() == [rank, 10 + rank]
        mine = paddle.zeros([1])
        stream.reduce_scatter(mine, paddle.to_tensor([1.0, 2.0])).wait()
        assert mine.tolist() == [2 * (rank + 1)]
        if rank == 0:
            stream.send(part, 1).wait()
        else:
            stream.recv(came, 0).wait()
            assert came.tolist() == [3, 3]

        x = paddle.to_tensor([[1.0, 2.0, 3.0, 4.0]], stop_gradient=False)
        own = mp_ops._c_split(x)
        assert own.tolist() == [[1.0, 2.0]] if rank == 0 else [[3.0, 4.0]]
        joined = mp_ops._c_concat(own * (rank + 1))
        assert joined.tolist() == [[1, 2, 6, 8]]
        collective._mp_allreduce(own.sum()).backward()
        assert x.grad.tolist() == [[1, 1, 1, 1]]
        x.clear_grad()
        (collective._c_identity(x) * (rank + 1)).sum().backward()
        assert x.grad.tolist() == [[3, 3, 3, 3]]
        logits = paddle.to_tensor([[0.5, 1.5, -1.0, 2.0]])
        loss = mp_ops._c_softmax_with_cross_entropy(mp_ops._c_split(logits), paddle.to_tensor([2]))
        np.testing.assert_allclose(loss.numpy().ravel(), paddle.nn.functional.cross_entropy(logits, paddle.to_tensor([2])).numpy(),
                                   rtol=1e-6)
        assert collective._get_default_group().nranks == 2 and dist.parallel.parallel_helper._is_parallel_ctx_initialized()
        """)


def test_gradients_by_hand(tmp_path):
    """fused_allreduce_gradients: the mean of the ranks' gradients, also where one has none."""
    passes(tmp_path, 2, """
        from proa.distributed.fleet.utils import hybrid_parallel_util as util
        net = paddle.nn.Sequential(paddle.nn.Linear(3, 3), paddle.nn.Linear(3, 1))
        net[0].weight.set_value(paddle.full([3, 3], float(rank)))
        fleet = dist.fleet
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"dp_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        hcg = fleet.get_hybrid_communicate_group()
        util.broadcast_dp_parameters(net, hcg)
        assert not net[0].weight.numpy().any(), "rank 0's"
        optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        assert [p.name for p in util.obtain_optimizer_parameters_list(optimizer)] == [p.name for p in net.parameters()]
        used = net if rank == 0 else net[1]
        used(paddle.full([1, 3], 1.0 + rank)).sum().backward()
        want = [(a + b) / 2 for a, b in ((1.0, 1.0), (0.0, 2.0))]
        util.fused_allreduce_gradients(list(net.parameters()), hcg)
        assert net[1].bias.grad.tolist() == [want[0]]
        assert net[1].weight.grad.numpy().ravel().tolist() == [want[1]] * 3
        assert net[0].bias.grad.numpy().shape == (3,)
        util.fused_allreduce_gradients_with_group(list(net.parameters()), None, scale=1.0)
        assert net[1].bias.grad.tolist() == [2.0]
        """)


def test_timers(capfd):
    """Timers of fleet's training loops."""
    from proa.distributed.fleet.utils import timer_helper
    timers = timer_helper.Timers()
    timers("step").start()
    with pytest.raises(AssertionError, match="started already"):
        timers("step").start()
    assert timers("step").elapsed() >= 0 and timers("step").started_
    timers("step").stop()
    timers.log(["step"])
    assert capfd.readouterr().out.startswith("time (ms) | step: ")
    with pytest.raises(AssertionError, match="normalizer"):
        timers.log(["step"], 0)


def test_random_collectives(tmp_path):
    script = (pathlib.Path(__file__).parent / "_fuzz.py").read_text()
    assert "CALLS = 10000" in script
    passes(tmp_path, 4, script.replace("CALLS = 10000", "CALLS = 1500").replace("sys.argv", "['fuzz']"))


def _spawned(base):
    import proa.distributed as dist
    dist.init_parallel_env()
    x = paddle.to_tensor([base + dist.get_rank()])
    dist.all_reduce(x)
    return float(x)


def _raises():
    raise KeyError("spawned cause")


SPAWNS = '''
import paddle
import paddle.distributed as dist
print(f"imported {__name__}\\n", end="", flush=True)  # one write: ranks share the pipe

def work(base):
    dist.init_parallel_env()
    x = paddle.to_tensor([base + dist.get_rank()])
    dist.all_reduce(x)
    return float(x)

if __name__ == "__main__":
    print("sums", [q.get() for q in dist.spawn(work, (1.0,), nprocs=2).return_queues])
'''


@pytest.mark.parametrize("as_module", [False, True])
def test_spawn_from_a_script_that_says_paddle(tmp_path, as_module):
    """Children import the script again, before they know what to run."""
    (tmp_path / "spawns.py").write_text(SPAWNS)
    package = os.path.dirname(os.path.dirname(paddle.__file__))
    done = subprocess.run([sys.executable, "-m", "proa", *(["-m", "spawns"] if as_module else ["spawns.py"])], cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": package}, capture_output=True, text=True, timeout=120)
    assert "sums [3.0, 3.0]" in done.stdout and done.stdout.count("imported __mp_main__") == 2, done.stdout + done.stderr


def test_launch_of_a_script_that_says_paddle(tmp_path):
    (tmp_path / "script.py").write_text("import paddle.distributed as dist\ndist.init_parallel_env()\nprint('size', dist.get_world_size())")
    package = os.path.dirname(os.path.dirname(paddle.__file__))
    done = subprocess.run([sys.executable, "-m", "proa", "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "script.py"],
                          cwd=tmp_path, env={**os.environ, "PYTHONPATH": package}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "size 2" in done.stdout, done.stdout + done.stderr


def test_spawn():
    context = paddle.distributed.spawn(_spawned, (1.0,), nprocs=2)
    assert [q.get() for q in context.return_queues] == [3.0, 3.0]
    with pytest.raises(Exception, match="spawned cause"):
        paddle.distributed.spawn(_raises, nprocs=2)
