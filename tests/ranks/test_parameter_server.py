"""fleet with parameter servers: real processes on this host. Modes against the same program in one process and against formulas, entries,
files, processes that are killed."""
import os
import signal
import time

import pytest

import oracle
from _servers import passes, run, start

ONE_WORKER = """
kinds = {"sgd": lambda: paddle.optimizer.SGD(0.1), "adam": lambda: paddle.optimizer.Adam(0.01), "adagrad": lambda: paddle.optimizer.Adagrad(0.1),
         "decay": lambda: paddle.optimizer.SGD(paddle.optimizer.lr.ExponentialDecay(0.1, 0.5))}
mode, kind, grows = os.environ["MODE"], os.environ["KIND"], os.environ["GROWS"] == "1"
rows = 4  # few: every batch reads all of them, so that Adam on servers, which leaves unread rows alone, is Adam
feeds = batches(6, 0, size=24, rows=rows)
assert all(len(set(f["s0"].ravel()) | set(f["s1"].ravel())) == rows for f in feeds)
if not fleet.PaddleCloudRoleMaker()._is_server():
    plain, first = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(plain, first), paddle.static.scope_guard(paddle.static.Scope()), paddle.utils.unique_name.guard():
        loss, _ = model(grows, rows)
        optimizer = kinds[kind]()
        optimizer.minimize(loss)
        exe = paddle.static.Executor()
        exe.run(first)
        want = []
        for feed in feeds:
            want += trained(exe, loss, [feed], plain)
            if kind == "decay":
                optimizer._learning_rate.step()
        weights = {name: value(name) for name in ("emb", "w1", "w2")}
loss, out = model(grows, rows)
optimizer = kinds[kind]()
exe = serve_or_start(loss, optimizer, mode != "sync", 2 if mode == "geo" else 0)
got = []
for feed in feeds:
    got += trained(exe, loss, [feed])
    if kind == "decay":
        optimizer._learning_rate.step()
np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
for name in ("w1", "w2"):
    np.testing.assert_allclose(value(name), weights[name], rtol=2e-5, atol=2e-6)
np.testing.assert_allclose(fleet.fleet._worker.rows_of(fleet.fleet._ps.sparse[0]), weights["emb"], rtol=2e-5, atol=2e-6)
fleet.stop_worker()
print("equal")
"""


@pytest.mark.parametrize("mode, kind, grows", [("async", "sgd", 1), ("async", "adam", 0), ("async", "decay", 1), ("sync", "sgd", 0),
                                               ("sync", "adam", 1), ("sync", "adagrad", 1), ("geo", "sgd", 0), ("geo", "adam", 1)])
def test_one_worker_is_one_process(tmp_path, mode, kind, grows):
    logs = passes(tmp_path, 2, 1, ONE_WORKER, environment={"MODE": mode, "KIND": kind, "GROWS": str(grows)})
    assert logs["workerlog.0"].count("equal") == 1


SEQUENCES = """
def net(kind):
    label, pooled = paddle.static.data("label", [None, 1], "float32"), []
    attr = paddle.ParamAttr(name="emb", initializer=paddle.nn.initializer.Constant(0.1))
    for name in ("s0", "s1"):
        s = paddle.static.data(name, [None, 1], "int64", lod_level=1)
        if kind == "sparse_embedding":
            e = paddle.static.nn.sparse_embedding(s, [20, 4], padding_idx=0, param_attr=attr)
        else:
            e = paddle.fluid.layers.embedding(s, [20, 4], padding_idx=0, param_attr=attr, **{kind: True})
        pooled.append(paddle.static.nn.sequence_pool(e, "sum"))
    out = paddle.static.nn.fc(paddle.concat(pooled, axis=1), 1, weight_attr=paddle.nn.initializer.Constant(0.2))
    return paddle.mean(paddle.square(out - label))

rng, feeds = np.random.RandomState(4), []
for _ in range(6):
    feed = {"label": rng.rand(5, 1).astype("float32")}
    for name in ("s0", "s1"):
        lengths = rng.randint(1, 4, 5).tolist()
        feed[name] = paddle.fluid.create_lod_tensor(rng.randint(0, 6, [sum(lengths), 1]), [lengths], paddle.CPUPlace())
    feeds.append(feed)
kind = os.environ["KIND"]
if not fleet.PaddleCloudRoleMaker()._is_server():
    plain, first = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(plain, first), paddle.static.scope_guard(paddle.static.Scope()), paddle.utils.unique_name.guard():
        loss = net(kind)
        paddle.optimizer.SGD(0.1).minimize(loss)
        exe = paddle.static.Executor()
        exe.run(first)
        want = trained(exe, loss, feeds, plain)
loss = net(kind)
exe = serve_or_start(loss, paddle.optimizer.SGD(0.1))
whole = paddle.static.CompiledProgram(paddle.static.default_main_program()).with_data_parallel(loss_name=loss.name)
got = trained(exe, loss, feeds[:3], whole) + trained(exe, loss, feeds[3:])
np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
fleet.stop_worker()
print("equal")
"""


@pytest.mark.parametrize("kind", ["sparse_embedding", "is_sparse", "is_distributed"])
def test_sequences_and_padding(tmp_path, kind):
    """Ranking models' slots: sequences of ids, padding that reads as zeros; also through optimizing passes."""
    assert "equal" in passes(tmp_path, 2, 1, SEQUENCES, environment={"KIND": kind})["workerlog.0"]


SYNC = """
n, rate, steps = 2, 0.5, 5
s = paddle.static.data("s", [None, 1], "int64")
y = paddle.static.data("y", [None, 1], "float32")
e = paddle.static.nn.sparse_embedding(s, [100, 2], param_attr=paddle.ParamAttr(name="emb", initializer=paddle.nn.initializer.Constant(0.5)))
w = paddle.static.create_parameter([2, 1], "float32", attr=paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.25)))
loss = paddle.mean(paddle.square(paddle.matmul(e, w) - y))
exe = serve_or_start(loss, paddle.optimizer.SGD(rate), a_sync=False)
rng = np.random.RandomState(1)
ids, labels = rng.randint(0, 6, [steps, n, 4]), rng.rand(steps, n, 4, 1).astype("float32")
me = fleet.worker_index()
for step in range(steps):
    exe.run(paddle.static.default_main_program(), {"s": ids[step, me][:, None], "y": labels[step, me]}, [loss])
table, weight = np.full([6, 2], 0.5), np.full([2, 1], 0.25)
for step in range(steps):
    dense, sums, pushes = np.zeros([2, 1]), np.zeros([6, 2]), np.zeros([6, 1])
    for worker in range(n):
        rows = table[ids[step, worker]]
        d = 2 / 4 * (rows @ weight - labels[step, worker])
        dense += rows.T @ d / n
        for i, g in zip(ids[step, worker], d @ weight.T):
            sums[i] += g
        pushes[np.unique(ids[step, worker])] += 1
    table, weight = table - rate * sums / np.maximum(pushes, 1), weight - rate * dense
fleet.barrier_worker()
np.testing.assert_allclose(value("w"), weight, rtol=2e-5, atol=2e-6)
seen = np.unique(ids)
np.testing.assert_allclose(fleet.fleet._worker.rows_of(fleet.fleet._ps.sparse[0])[seen], table[seen], rtol=2e-5, atol=2e-6)
assert fleet.util.all_reduce(np.array([me + 1.0]))[0] == 3
fleet.stop_worker()
print("as the formula")
"""


def test_sync_averages_the_workers(tmp_path):
    logs = passes(tmp_path, 2, 2, SYNC)
    assert all("as the formula" in text for text in logs.values()) and len(logs) == 2


GEO = """
n, rate, k, rounds = 2, 0.5, 2, 3
s = paddle.static.data("s", [None, 1], "int64")
y = paddle.static.data("y", [None, 1], "float32")
start = (np.arange(12).reshape(6, 2) / 10).astype("float32")
e = paddle.static.nn.embedding(s, [6, 2], is_sparse=True, param_attr=paddle.ParamAttr(name="emb", initializer=paddle.nn.initializer.Assign(start)))
w = paddle.static.create_parameter([2, 1], "float32", attr=paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.25)))
loss = paddle.mean(paddle.square(paddle.matmul(paddle.reshape(e, [-1, 2]), w) - y))
exe = serve_or_start(loss, paddle.optimizer.SGD(rate), k_steps=k)
rng = np.random.RandomState(1)
ids, labels = rng.randint(0, 6, [rounds, n, k, 4]), rng.rand(rounds, n, k, 4, 1).astype("float32")
me = fleet.worker_index()

def local(tables, r, worker):
    for step in range(k):
        i, label = ids[r, worker, step], labels[r, worker, step]
        rows = tables["emb"][i]
        d = 2 / 4 * (rows @ tables["w"] - label)
        g, total = rows.T @ d, np.zeros([6, 2])
        np.add.at(total, i, d @ tables["w"].T)
        tables["emb"] -= rate * total
        tables["w"] -= rate * g

# workers take turns, so that the order is known: Paddle's communicator in NumPy
server = {"emb": start.astype("float64"), "w": np.full([2, 1], 0.25)}
mine = [{name: v.copy() for name, v in server.items()} for _ in range(n)]
old = [{name: v.copy() for name, v in server.items()} for _ in range(n)]
for r in range(rounds):
    for turn in range(n):
        if turn == me:
            for step in range(k):
                exe.run(paddle.static.default_main_program(), {"s": ids[r, me, step][:, None], "y": labels[r, me, step]}, [])
        fleet.barrier_worker()
        local(mine[turn], r, turn)
        for name in server:
            share = (mine[turn][name] - old[turn][name]) / n
            old[turn][name] += share
            server[name] += share
            mine[turn][name] += server[name] - old[turn][name]
            old[turn][name] = server[name].copy()
for name in server:
    np.testing.assert_allclose(value(name), mine[me][name], rtol=2e-5, atol=2e-6)
fleet.stop_worker()
print("as the formula")
"""


def test_geo_sends_shares_of_differences(tmp_path):
    logs = passes(tmp_path, 2, 2, GEO)
    assert all("as the formula" in text for text in logs.values()) and len(logs) == 2


def test_rows_enter_by_count_and_go_by_days(tmp_path):
    logs = passes(tmp_path, 2, 1, """
    s = paddle.static.data("s", [None, 1], "int64")
    e = paddle.static.nn.sparse_embedding(s, [1000000000, 2], entry=paddle.distributed.CountFilterEntry(3),
                                          param_attr=paddle.ParamAttr(name="emb", initializer=paddle.nn.initializer.Constant(2.0)))
    loss = paddle.mean(e)
    exe = serve_or_start(loss, paddle.optimizer.SGD(1.0))
    far, reads = np.array([[5], [999999999], [5]]), []
    for _ in range(5):
        reads.append(exe.run(paddle.static.default_main_program(), {"s": far}, [e])[0][:, 0].tolist())
    third = 1 / 3
    np.testing.assert_allclose(reads, [[0, 0, 0], [0, 0, 0], [2, 2, 2], [2 - third, 2 - third / 2, 2 - third],
                                       [2 - 2 * third, 2 - third, 2 - 2 * third]], rtol=1e-6)
    worker = fleet.fleet._worker
    exe.run(paddle.static.default_main_program(), {"s": np.array([[7]])}, [])
    rows = lambda: paddle._core.ps_rows(worker._client, 0)
    assert rows() == 3
    fleet.shrink(2)
    exe.run(paddle.static.default_main_program(), {"s": np.array([[5]])}, [])
    fleet.shrink(2)
    assert rows() == 1
    fleet.stop_worker()
    print("done")
    """)
    assert "done" in logs["workerlog.0"]


SAVES = """
loss, out = model(grows=os.environ["GROWS"] == "1")
feeds = batches(8, 3)
where = os.path.join(folder, "saved")
first = os.environ["PART"] == "1"
exe = serve_or_start(loss, paddle.optimizer.Adam(0.01), load=None if first else where)
if first:
    before = trained(exe, loss, feeds[:4])
    fleet.save_persistables(exe, where)
    after = trained(exe, loss, feeds[4:])
    np.save(os.path.join(folder, "want.npy"), after)
else:
    fleet.load_model(where)
    # the dense parameters' moments begin anew, as in Paddle: the first loss alone depends on values only
    got = trained(exe, loss, feeds[4:5])
    np.testing.assert_allclose(got, np.load(os.path.join(folder, "want.npy"))[:1], rtol=2e-6)
fleet.stop_worker()
print("part", os.environ["PART"])
"""


@pytest.mark.parametrize("grows", [0, 1])
def test_another_number_of_servers_goes_on(tmp_path, grows):
    environment = {"GROWS": str(grows)}
    passes(tmp_path, 3, 1, SAVES, environment={**environment, "PART": "1"})
    files = sorted(p.name for p in (tmp_path / "saved/emb_txt").iterdir())
    assert files == sorted(f"emb.block{i}.{kind}" for i in range(3) for kind in ("txt", "meta"))
    meta = (tmp_path / "saved/emb_txt/emb.block0.meta").read_text()
    assert "param=emb\nshard_id=0\nrow_names=Param,Moment1,Moment2,Beta1Pow,Beta2Pow\nrow_dims=3,3,3,1,1\ncount=" in meta
    assert "part 2" in passes(tmp_path, 2, 1, SAVES, environment={**environment, "PART": "2"})["workerlog.0"]


def test_datasets_are_shuffled_over_workers(tmp_path):
    for part in range(2):
        (tmp_path / f"part-{part}.txt").write_text("".join(f"1 {i % 20} 1 {(7 * i) % 20} 1 {i / 100}\n" for i in range(part * 37, part * 37 + 37)))
    logs = passes(tmp_path, 2, 2, """
    loss, out = model()
    exe = serve_or_start(loss, paddle.optimizer.SGD(0.1))
    block = paddle.static.default_main_program().global_block()
    dataset = paddle.distributed.InMemoryDataset()
    dataset.init(batch_size=4, thread_num=1, use_var=[block.var(n) for n in ("s0", "s1", "label")])
    dataset.set_filelist(fleet.util.get_file_shard([os.path.join(folder, f"part-{i}.txt") for i in range(2)]))
    dataset.load_into_memory()
    dataset.global_shuffle(fleet)
    mine = dataset.get_shuffle_data_size()
    assert dataset.get_memory_data_size(fleet) == 74 == dataset.get_shuffle_data_size(fleet)
    exe.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], print_period=5)
    assert fleet.metrics.sum(np.array([float(mine)]))[0] == 74
    fleet.barrier_worker()
    fleet.stop_worker()
    print("samples", mine)
    """)
    sizes = [int(text.split("samples ")[1]) for text in logs.values()]
    assert sum(sizes) == 74 and all("batch: [5]" in text for text in logs.values())


def test_inference(tmp_path):
    """DistributedInfer reads servers without counting; a whole table is saved with the model."""
    logs = passes(tmp_path, 2, 1, """
    loss, out = model(grows=False)
    infer = fleet.utils.DistributedInfer()
    for_test = paddle.static.default_main_program().clone(for_test=True)
    exe = serve_or_start(loss, paddle.optimizer.SGD(0.1))
    trained(exe, loss, batches(5, 2))
    feed = batches(1, 9)[0]
    want = exe.run(infer.get_dist_infer_program(), feed, [out])[0]
    with paddle.static.scope_guard(paddle.static.Scope()):
        try:
            exe.run(for_test, feed, [out])
        except RuntimeError as e:
            assert "read by the program of fleet.utils.DistributedInfer" in str(e), e
        else:
            raise AssertionError("a program without values ran")
    where = os.path.join(folder, "model")
    np.savez(os.path.join(folder, "want.npz"), want=want, **feed)
    fleet.save_inference_model(exe, where, ["s0", "s1"], [out])
    with paddle.static.scope_guard(paddle.static.Scope()):
        program, feeds, fetches = paddle.fluid.io.load_inference_model(where, exe)
        got = exe.run(program, {name: feed[name] for name in feeds}, fetches)[0]
    np.testing.assert_allclose(got, want, rtol=1e-6)
    counts = [line.split()[1] for i in range(2) for line in open(os.path.join(where, f"emb_txt/emb.block{i}.txt"))]
    assert max(map(int, counts)) <= 10
    fleet.stop_worker()
    print("predicted")
    """)
    assert "predicted" in logs["workerlog.0"]
    if oracle.PYTHON.exists():  # the folder is one of real Paddle's
        oracle.ask("-c", f"""
import numpy as np, paddle
paddle.enable_static()
exe, given = paddle.static.Executor(), np.load({str(tmp_path / "want.npz")!r})
program, feeds, fetches = paddle.static.io.load_inference_model({str(tmp_path / "model")!r}, exe, model_filename="__model__", params_filename=None)
got = exe.run(program, {{name: given[name] for name in feeds}}, fetches)[0]
np.testing.assert_allclose(got, given["want"], rtol=2e-5)
""")


def test_roles_from_the_script(tmp_path):
    """UserDefinedRoleMaker, without PADDLE_*: processes of the test's own."""
    import subprocess
    import sys

    from _servers import PREFIX
    from proa.distributed.spawn import free_ports
    import proa as paddle
    ports = free_ports(3)
    script = tmp_path / "script.py"
    script.write_text(PREFIX + """
number, kind = int(sys.argv[2]), sys.argv[3]
ports = sys.argv[4].split(",")
role = fleet.UserDefinedRoleMaker(current_id=number, role=fleet.Role.SERVER if kind == "server" else fleet.Role.WORKER, worker_num=1,
                                  worker_endpoints=["127.0.0.1:" + ports[2]], server_endpoints=["127.0.0.1:" + p for p in ports[:2]])
fleet.init(role)
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
loss, out = model()
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
assert fleet.server_num() == 2 and fleet.is_server() == (kind == "server") and fleet.server_endpoints(True).count(":") == 2
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    trained(exe, loss, batches(2, 0))
    paddle._core.ps_stop_servers(fleet.fleet._worker._client)
    fleet.stop_worker()
print("ended")
""")
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(paddle.__file__)), "PROA_TIMEOUT": "30", "OMP_NUM_THREADS": "1"}
    started = [subprocess.Popen([sys.executable, str(script), str(tmp_path), str(i), kind, ",".join(map(str, ports))], env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for i, kind in ((0, "server"), (1, "server"), (0, "worker"))]
    try:
        for process in started:
            assert "ended" in process.communicate(timeout=60)[0] and process.returncode == 0
    finally:
        for process in started:
            process.kill()


# ---- processes that end

STEPS = """
loss, out = model()
exe = serve_or_start(loss, paddle.optimizer.SGD(0.1), a_sync=os.environ["SYNC"] == "0")
print("pid", os.getpid(), flush=True)
open(os.path.join(folder, f"begun.{fleet.worker_index()}"), "w").close()
try:
    for feed in batches(100000, 0):
        exe.run(paddle.static.default_main_program(), feed, [])
        if fleet.worker_index() == 1 and os.path.exists(os.path.join(folder, "raise")):
            raise KeyError("the script's own")
except (RuntimeError, TimeoutError) as e:
    print("caught", type(e).__name__, e, flush=True)
    os._exit(3)
"""


def _await(folder, names):
    until = time.monotonic() + 60
    while not all((folder / name).exists() for name in names):
        assert time.monotonic() < until
        time.sleep(0.05)


def _pid_of(process, marker):
    """The pid of the launcher's child whose environment has the marker."""
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/status") as f, open(f"/proc/{entry}/environ", "rb") as e:
                if f"PPid:\t{process.pid}\n" in f.read() and marker in e.read().split(b"\0"):
                    return int(entry)
        except OSError:
            continue
    raise AssertionError(f"no child has {marker}")


def _log(tmp_path, name, word):
    until = time.monotonic() + 30
    while word not in (text := (tmp_path / "log" / name).read_text()):
        assert time.monotonic() < until, text
        time.sleep(0.05)
    return text


@pytest.mark.parametrize("sync", [0, 1])
def test_a_server_that_is_killed(tmp_path, sync):
    process = start(tmp_path, 2, 1, STEPS, environment={"SYNC": str(sync)})
    _await(tmp_path, ["begun.0"])
    os.kill(process.pid, signal.SIGSTOP)  # the launcher would end the worker at once
    os.kill(_pid_of(process, b"TRAINING_ROLE=PSERVER"), signal.SIGKILL)
    try:
        text = _log(tmp_path, "workerlog.0", "caught")
        assert "caught RuntimeError (Unavailable)" in text and "is gone" in text and "server " in text and "127.0.0.1:" in text, text
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.communicate(timeout=60)
    assert process.returncode == 1


@pytest.mark.parametrize("raises", [0, 1])
def test_a_worker_that_ends_badly(tmp_path, raises):
    process = start(tmp_path, 2, 2, STEPS, environment={"SYNC": "1"})
    _await(tmp_path, ["begun.0", "begun.1"])
    os.kill(process.pid, signal.SIGSTOP)
    if raises:
        (tmp_path / "raise").touch()
    else:
        os.kill(_pid_of(process, b"PADDLE_TRAINER_ID=1"), signal.SIGKILL)
    try:
        text = _log(tmp_path, "workerlog.0", "caught")
        assert "caught RuntimeError (Unavailable)" in text and "worker 1 has died" in text, text
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.communicate(timeout=60)
    assert process.returncode == 1


def test_the_launcher_tells_who_failed(tmp_path):
    code, out, logs = run(tmp_path, 1, 2, """
    fleet.init()
    if fleet.is_server():
        import time
        time.sleep(60)
    sys.exit(5 if fleet.worker_index() == 1 else 0)
    """)
    assert code == 1 and "ABORT!!! worker 1 was aborted (exit code 5)" in out and "serverlog.0" in logs


def test_endpoints_that_are_given(tmp_path):
    """--servers and --workers: those of this host are started; a bad one is refused."""
    from _servers import PREFIX
    from proa.distributed.launch.main import main
    from proa.distributed.spawn import free_ports
    ports = free_ports(3)
    script = tmp_path / "script.py"
    script.write_text(PREFIX + """
loss, out = model()
exe = serve_or_start(loss, paddle.optimizer.SGD(0.1))
trained(exe, loss, batches(2, 0))
print("endpoints", fleet.server_endpoints(), fleet.worker_endpoints(), fleet.worker_num(), fleet.is_first_worker())
fleet.stop_worker()
""")
    servers, worker = [f"127.0.0.1:{p}" for p in ports[:2]], f"127.0.0.1:{ports[2]}"
    options = ["--log_dir", str(tmp_path / "log"), str(script), str(tmp_path)]
    assert main(["--servers", ",".join(servers), "--workers", worker, *options]) == 0
    assert f"endpoints {servers} ['{worker}'] 1 True" in (tmp_path / "log/workerlog.0").read_text()
    assert (tmp_path / "log/serverlog.1").exists()
    with pytest.raises(SystemExit, match="--servers has 'nowhere'; expected host:port"):
        main(["--servers", "nowhere", "--workers", worker, *options])
    with pytest.raises(SystemExit, match="heterogeneous workers"):
        main(["--server_num", "1", "--worker_num", "1", "--heter_worker_num", "1", *options])


def test_the_documentations_program(tmp_path):
    import pathlib
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/distributed.md").read_text()
    code = page.partition("## Parameter servers")[2].partition("```python\n")[2].partition("```")[0]
    body = "os.chdir(folder)\n" + code.replace("import paddle\n", "").replace("from paddle.distributed import fleet\n", "")
    passes(tmp_path, 2, 2, body)
    rows = [line.split("\t")[:2] for i in range(2) for line in
            (tmp_path / f"saved/sparse_embedding_0.w_0_txt/sparse_embedding_0.w_0.block{i}.txt").read_text().splitlines()]
    assert sorted(id for id, _ in rows) == ["3", "5"] and all(int(count) >= 100 for _, count in rows)


# ---- programs

def test_lookups_of_fed_ids_are_one_message():
    """All slots of a table: one pull and one push a step, though each slot's ids are squeezed first."""
    import proa as paddle
    from proa.distributed import fleet
    job = fleet.Fleet()
    job.init(fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_num=1, server_endpoints=["127.0.0.1:1"]))
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main, paddle.static.Program()):
            slots = [paddle.static.data(f"s{i}", [None, 1], "int64") for i in range(3)]
            attr = paddle.ParamAttr(name="emb")
            rows = [paddle.static.nn.sparse_embedding(s, [1 << 40, 4], param_attr=attr) for s in (*slots, slots[0] + 1)]
            alone = paddle.static.nn.sparse_embedding(slots[0], [1 << 40, 4], is_test=True)
            loss = paddle.mean(paddle.static.nn.fc(paddle.concat([*rows, alone], 1), 1))
            job.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
        types = [op.type for op in main.global_block().ops]
        assert [types.count(t) for t in ("distributed_lookup_table", "distributed_push_sparse", "ps_send", "ps_send_barrier", "ps_recv", "sgd")] == \
            [3, 1, 1, 1, 1, 0]  # the third: a look-up that only tests, in a table of its own
        with pytest.raises(NotImplementedError, match="servers keep the tables of one program"):
            job.minimize(loss)
        pulls = [op for op in main.global_block().ops if op.type == "distributed_lookup_table"]
        assert sorted(len(op.input("ids")) for op in pulls) == [1, 1, 3]
    finally:
        paddle.disable_static()


# ---- what is refused

@pytest.mark.parametrize("change, words", [
    ("optimizer = paddle.optimizer.Momentum(0.1)", "servers update parameters by SGD, Adam or Adagrad, got Momentum"),
    ("optimizer = paddle.optimizer.SGD(0.1, weight_decay=0.1)", "grad_clip and weight_decay do not go with updates on servers"),
    ("strategy.a_sync_configs = {'k_steps': -1}", "k_steps must be invalid value"),
    ("strategy.amp = True", "amp of the strategy does not go with parameter servers"),
])
def test_what_servers_cannot_do_is_refused(tmp_path, change, words):
    import proa as paddle
    from proa.distributed import fleet
    job = fleet.Fleet()
    job.init(fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_num=2, server_endpoints=["127.0.0.1:1"]))
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
            x = paddle.static.data("x", [None, 1], "int64")
            loss = paddle.mean(paddle.static.nn.sparse_embedding(x, [10, 2]))
            names = {"paddle": paddle, "optimizer": paddle.optimizer.SGD(0.1), "strategy": fleet.DistributedStrategy()}
            names["strategy"].a_sync = True
            exec(change, names)
            with pytest.raises((NotImplementedError, ValueError), match=words):
                job.distributed_optimizer(names["optimizer"], names["strategy"]).minimize(loss)
            with pytest.raises(RuntimeError, match="fleet.minimize first"):
                job.init_worker()
    finally:
        paddle.disable_static()


PARTS = """
loss, out = model()
exe = serve_or_start(loss, paddle.optimizer.Adam(0.01))
scope, main = paddle.static.global_scope(), paddle.static.default_main_program()
feeds = batches(4, 3)
trained(exe, loss, feeds)
table = fleet.fleet._ps.sparse[0].number
where = lambda name: os.path.join(folder, name)
fleet.save_one_table(table, where("table"), 0)
fleet.save_dense_params(exe, where("dense"), scope, main)
fleet.save_dense_params(exe, where("one"), scope, main, ["w1"])
assert os.listdir(where("one")) == ["w1"] and {"w1", "w2"} <= set(os.listdir(where("dense"))) and "emb_txt" not in os.listdir(where("dense"))
fleet.save_persistables(exe, where("all"))
kept = trained(exe, loss, feeds[:1])
trained(exe, loss, feeds)
fleet.load_inference_model(where("all"), 0)
np.testing.assert_allclose(trained(exe, loss, feeds[:1]), kept, rtol=2e-6)
fleet.load_one_table(table, where("table"), 0)
fleet.save_one_table(table, where("again"), 0)
rows = lambda name: sorted(open(f"{where(name)}/emb_txt/emb.block0.txt").read().splitlines())
assert rows("again") == rows("table") and len(rows("table")) > 5
for bad, text in [(lambda: fleet.save_one_table(99, where("no"), 0), "no sparse table 99"), (lambda: fleet.save_one_table(table, "", 7), "mode")]:
    try:
        bad()
    except ValueError as e:
        assert text in str(e), e
    else:
        raise AssertionError(text)
fleet.stop_worker()
print("parts")
"""


def test_tables_and_dense_parameters_by_themselves(tmp_path):
    assert "parts" in passes(tmp_path, 1, 1, PARTS)["workerlog.0"]
