"""Starts scripts as ranks of a job on this host, through the launcher: in processes of their own, and, where all is to end well, in
forks."""
import os
import subprocess
import sys
import textwrap

import launched
import proa as paddle

SETUP = """
import os, sys
import numpy as np
import proa as paddle
import proa.distributed as dist
dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
"""


def written(tmp_path, body):
    script = tmp_path / "script.py"
    script.write_text(SETUP + textwrap.dedent(body))
    return script


def start(tmp_path, ranks, body, *options, environment=None):
    script = written(tmp_path, body)
    package = os.path.dirname(os.path.dirname(paddle.__file__))
    env = {**os.environ, "PYTHONPATH": package, "PROA_TIMEOUT": "60", "OMP_NUM_THREADS": "1", **(environment or {})}
    return subprocess.Popen([sys.executable, "-m", "proa.distributed.launch", "--nproc_per_node", str(ranks), "--log_dir",
                             str(tmp_path / "log"), *options, str(script), str(tmp_path)], env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(tmp_path, ranks, body, *options, environment=None, limit=240):
    process = start(tmp_path, ranks, body, *options, environment=environment)
    out, err = process.communicate(timeout=limit)
    logs = "\n".join(p.read_text() for p in sorted((tmp_path / "log").glob("workerlog.*")))
    return process.returncode, out, err, logs


def passes(tmp_path, ranks, body, environment=None, limit=240):
    """Runs a body as ranks that all end well; returns their logs."""
    return launched.passes(tmp_path, ranks, written(tmp_path, body), tmp_path, environment=environment, limit=limit)
