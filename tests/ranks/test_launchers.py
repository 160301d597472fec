"""Ranks that another launcher has started, told by its variables; torchrun itself, where PyTorch is installed."""
import json
import os
import pathlib
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import proa as paddle
from proa.distributed.launch.nodes import Meeting

ROOT = pathlib.Path(__file__).resolve().parents[2]
TORCHRUN = ROOT / ".venv-torch/bin/torchrun"
OTHERS = ("PROA_", "PADDLE_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_", "OMPI_", "PMI_", "SLURM_")

SCRIPT = """
import sys
import proa as paddle
import proa.distributed as dist
dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
x = paddle.full([1], 10.0 + rank)
dist.all_reduce(x)
assert (size, float(x)) == (2, 21.0), (size, float(x))
open(f"{sys.argv[1]}/done.{rank}", "w").close()
"""

LAUNCHERS = {
    "paddle": "PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID={rank} PADDLE_TRAINER_ENDPOINTS=127.0.0.1:{port},127.0.0.1:{port} "
              "PADDLE_CURRENT_ENDPOINT=127.0.0.1:{port}",
    "torchrun": "WORLD_SIZE=2 RANK={rank} LOCAL_RANK={rank} LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={port}",
    "mpirun": "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_LOCAL_SIZE=2",
    "mpirun over hosts": "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_LOCAL_SIZE=1 MASTER_ADDR=127.0.0.1 "
                         "MASTER_PORT={port}",
    "hydra": "PMI_SIZE=2 PMI_RANK={rank} MPI_LOCALNRANKS=2 MPI_LOCALRANKID={rank}",
    "srun": "SLURM_STEP_ID=0 SLURM_JOB_ID={job} SLURM_PROCID={rank} SLURM_NTASKS=2 SLURM_LOCALID={rank} SLURM_STEP_NODELIST=localhost",
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def environment():
    """This process's, without launchers' variables."""
    package = os.path.dirname(os.path.dirname(paddle.__file__))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(OTHERS)}
    return {**kept, "PYTHONPATH": package, "PROA_TIMEOUT": "60", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_variables(tmp_path, script, launcher):
    port = free_port()
    text = LAUNCHERS[launcher]
    ranks = [subprocess.Popen([sys.executable, str(script), str(tmp_path)], stderr=subprocess.PIPE, text=True, env={
        **environment(), **dict(word.split("=", 1) for word in text.format(rank=rank, port=port, job=os.getpid()).split())})
        for rank in range(2)]
    said = [one.communicate(timeout=120)[1] for one in ranks]
    assert [one.returncode for one in ranks] == [0, 0], said


@pytest.mark.skipif(not TORCHRUN.exists(), reason="PyTorch is not installed: tools/bootstrap --bench")
def test_torchrun(tmp_path, script):
    done = subprocess.run([TORCHRUN, "--nproc_per_node", "2", "--master_port", str(free_port()), "--no-python", sys.executable, str(script),
                           str(tmp_path)], env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all((tmp_path / f"done.{rank}").exists() for rank in range(2))


def says(port, data):
    """The answer of the launcher at this port to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        s.sendall(data)
        return s.makefile("rb").readline()


def test_launchers_meet():
    """Three nodes with different numbers of ranks; strangers, and a node that is there already, change nothing."""
    port, hello = free_port(), {"job": "j", "token": "", "nodes": 3, "node": 1, "ports": [5], "host": ""}
    with ThreadPoolExecutor() as pool:
        first = pool.submit(Meeting(f"127.0.0.1:{port}", 3, 0, "j", 60).meet, [1], "")
        last = pool.submit(Meeting(f"127.0.0.1:{port}", 3, 2, "j", 60).meet, [2, 3], "h")
        with socket.socket() as waits:  # until node 0 listens
            while waits.connect_ex(("127.0.0.1", port)):
                pass
        for stranger in (b"GET / HTTP/1.1\n", b"[" * 100000 + b"\n", b"[]\n", b"\n"):
            assert says(port, stranger) == b""
        for wrong, why in (({"job": "k"}, b"another job"), ({"token": "t"}, b"another PROA_TOKEN"), ({"node": 3}, b"node 3 of 3"),
                           ({"node": 0}, b"node 0 of 3"), ({"nodes": 2}, b"of 2 in a job of 3"), ({"ports": []}, b"no ranks"),
                           ({"ports": [0]}, b"no ranks"), ({"ports": ["5"]}, b"no ranks"), ({"host": 3}, b"no ranks")):
            assert why in says(port, json.dumps({**hello, **wrong}).encode() + b"\n")
        met = [first, pool.submit(Meeting(f"127.0.0.1:{port}", 3, 1, "j", 60).meet, [4], ""), last]
        nodes, secrets = zip(*(one.result(60) for one in met))
    assert nodes[0] == nodes[1] == nodes[2] == [["127.0.0.1:1"], ["127.0.0.1:4"], ["h:2", "h:3"]]
    assert len(set(secrets)) == 1 and len(secrets[0]) == 32


def test_launchers_that_do_not_meet(monkeypatch):
    port = free_port()
    for node, why in ((0, "have not come to .* in time: 1, 2"), (1, "has not answered in time")):
        with pytest.raises(SystemExit, match=why):
            Meeting(f"127.0.0.1:{port}", 3, node, "j", 0.3).meet([1], "")
    for master, node, why in (("nowhere", 0, "expected host:port"), ("h:1", -1, "--rank is -1"), ("h:1", 3, "0 to 2")):
        with pytest.raises(SystemExit, match=why):
            Meeting(master, 3, node, "j", 1)
    with pytest.raises(SystemExit, match="--master is an address of node 0"):
        Meeting("192.0.2.1:9", 3, 0, "j", 1).meet([1], "")
    with ThreadPoolExecutor() as pool:
        first = pool.submit(Meeting(f"127.0.0.1:{port}", 2, 0, "j", 5).meet, [1], "")
        monkeypatch.setenv("PROA_TOKEN", "mine")
        with pytest.raises(SystemExit, match="refused this node: another job, or another PROA_TOKEN"):
            Meeting(f"127.0.0.1:{port}", 2, 1, "j", 5).meet([1], "")
        assert isinstance(first.exception(30), SystemExit)
