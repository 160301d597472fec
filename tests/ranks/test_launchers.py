"""Ranks that another launcher has started, told by its variables; torchrun itself, where PyTorch is installed."""
import os
import pathlib
import socket
import subprocess
import sys

import pytest

import proa as paddle

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
