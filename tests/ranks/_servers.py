"""Starts scripts as jobs with parameter servers on this host, through the launcher. PREFIX has a small ranking model: two slots that look
up one table, and two dense layers."""
import os
import re
import subprocess
import sys
import textwrap

import proa as paddle

PREFIX = """
import os, sys
import numpy as np
import proa as paddle
from proa.distributed import fleet
paddle.enable_static()
folder = sys.argv[1]

def model(grows=True, rows=20, entry=None, start=None):
    # (loss, prediction) of a program whose values all start alike
    constant = paddle.nn.initializer.Constant
    slots = [paddle.static.data(f"s{i}", [None, 1], "int64") for i in range(2)]
    label = paddle.static.data("label", [None, 1], "float32")
    attr = paddle.ParamAttr(name="emb", initializer=start or constant(0.1))
    rows_of = (lambda s: paddle.static.nn.sparse_embedding(s, [rows, 3], param_attr=attr, entry=entry)) if grows else (
        lambda s: paddle.static.nn.embedding(s, [rows, 3], is_sparse=True, param_attr=attr))
    x = paddle.concat([paddle.reshape(rows_of(s), [-1, 3]) for s in slots], axis=1)
    h = paddle.static.nn.fc(x, 4, activation="tanh", weight_attr=paddle.ParamAttr(name="w1", initializer=constant(0.05)))
    out = paddle.static.nn.fc(h, 1, weight_attr=paddle.ParamAttr(name="w2", initializer=constant(0.3)))
    return paddle.mean(paddle.square(out - label)), out

def batches(count, seed, size=8, rows=20):
    rng = np.random.RandomState(seed)
    return [{"s0": rng.randint(0, rows, [size, 1]), "s1": rng.randint(0, rows, [size, 1]),
             "label": rng.rand(size, 1).astype("float32")} for _ in range(count)]

def serve_or_start(loss, optimizer, a_sync=True, k_steps=0, load=None):
    # does not return in a server
    fleet.init()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = a_sync
    if k_steps:
        strategy.a_sync_configs = {"k_steps": k_steps}
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server(*([load] if load else []))
        fleet.run_server()
        sys.exit(0)
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    return exe

def value(name):
    return np.array(paddle.static.global_scope().find_var(name).get_tensor())

def trained(exe, loss, feeds, program=None):
    return [float(exe.run(program or paddle.static.default_main_program(), feed, [loss])[0]) for feed in feeds]
"""


def start(tmp_path, servers, workers, body, *options, environment=None, name="script.py"):
    script = tmp_path / name
    script.write_text(PREFIX + textwrap.dedent(body))
    package = os.path.dirname(os.path.dirname(paddle.__file__))
    env = {**os.environ, "PYTHONPATH": package, "PROA_TIMEOUT": "30", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore",
           **(environment or {})}
    return subprocess.Popen([sys.executable, "-m", "proa.distributed.launch", "--server_num", str(servers), "--worker_num", str(workers),
                             "--log_dir", str(tmp_path / "log"), *options, str(script), str(tmp_path)], env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(tmp_path, servers, workers, body, *options, environment=None, limit=120):
    """(exit code, output, the workers' logs)"""
    process = start(tmp_path, servers, workers, body, *options, environment=environment)
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate(timeout=30)
    logs = {path.name: path.read_text() for path in sorted((tmp_path / "log").glob("*log.*"))}
    return process.returncode, out + err, logs


def passes(tmp_path, servers, workers, body, *options, environment=None):
    """Runs a body in a job that ends well; the workers' logs."""
    code, out, logs = run(tmp_path, servers, workers, body, *options, environment=environment)
    assert code == 0, "\n".join([out, *(f"--- {name}\n{text}" for name, text in logs.items())])
    return {name: text for name, text in logs.items() if re.match("workerlog", name)}
