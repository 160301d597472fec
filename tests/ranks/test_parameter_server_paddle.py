"""The same script under real Paddle 2.6.2 and Proa, with two servers and one worker: GEO, whose numbers do not depend on timing. (Its sync
mode crashes, and its async mode pushes from a thread, when that likes.)"""
import json
import os
import subprocess
import sys

import pytest

import proa as paddle
from conftest import NEEDS_PADDLE
from oracle import PYTHON
from proa.distributed.spawn import free_ports

SCRIPT = """
import json, os, sys
import numpy as np
import paddle
from paddle.distributed import fleet
paddle.enable_static()
fleet.init()
constant = paddle.nn.initializer.Constant
slots = [paddle.static.data(f"s{i}", [None, 1], "int64") for i in range(2)]
label = paddle.static.data("label", [None, 1], "float32")
attr = paddle.ParamAttr(name="emb", initializer=constant(0.1))
rows = [paddle.reshape(paddle.static.nn.embedding(s, [30, 4], is_sparse=True, param_attr=attr), [-1, 4]) for s in slots]
h = paddle.static.nn.fc(paddle.concat(rows, 1), 6, activation="tanh", weight_attr=paddle.ParamAttr(name="w1", initializer=constant(0.05)))
out = paddle.static.nn.fc(h, 1, weight_attr=paddle.ParamAttr(name="w2", initializer=constant(0.3)))
loss = paddle.mean(paddle.square(out - label))
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
strategy.a_sync_configs = {"k_steps": 2}
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    rng = np.random.RandomState(3)
    losses = []
    for step in range(8):
        feed = {f"s{i}": rng.randint(0, 30, [16, 1]).astype("int64") for i in range(2)}
        feed["label"] = rng.rand(16, 1).astype("float32")
        losses.append(float(exe.run(paddle.static.default_main_program(), feed, [loss])[0]))
    print("losses", json.dumps(losses), flush=True)
    os._exit(0)
"""


def _losses(command, script, folder, environment):
    ports = free_ports(3)
    common = {**environment, "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(f"127.0.0.1:{p}" for p in ports[:2]), "POD_IP": "127.0.0.1",
              "PADDLE_TRAINERS_NUM": "1", "PADDLE_TRAINER_ENDPOINTS": f"127.0.0.1:{ports[2]}", "OMP_NUM_THREADS": "1", "PROA_TIMEOUT": "60"}
    servers = [subprocess.Popen([*command, str(script)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env={**common, "TRAINING_ROLE": "PSERVER", "PADDLE_PORT": str(p)}) for p in ports[:2]]
    try:
        done = subprocess.run([*command, str(script)], cwd=folder, capture_output=True, text=True, timeout=120,
                              env={**common, "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0", "PADDLE_PORT": str(ports[2])})
    finally:
        for server in servers:
            server.kill()
            server.wait()
    assert "losses" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(done.stdout.rpartition("losses ")[2].splitlines()[0])


@NEEDS_PADDLE
def test_geo_is_paddles(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    package = os.path.dirname(os.path.dirname(paddle.__file__))
    ours = _losses([sys.executable, "-m", "proa"], script, tmp_path, {**environment, "PYTHONPATH": package})
    paddles = _losses([str(PYTHON)], script, tmp_path, environment)
    assert ours == pytest.approx(paddles, rel=2e-5, abs=2e-6)
