"""Programs on real Paddle, for tests: run() is subprocess.run of its interpreter, without the two seconds that
`import paddle` takes each time (oracle_server.py)."""
import contextlib
import os
import pathlib
import subprocess

from forked import Forked

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHON = pathlib.Path(os.environ.get("PROA_ORACLE", ROOT / ".venv-oracle/bin/python"))
# One thread: some kernels of Paddle 2.6.2 race between two (send_ue_recv, density_prior_box) and answer now this, now that.
ENVIRONMENT = {"GLOG_minloglevel": "3", "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
_paddle = Forked([PYTHON, ROOT / "tests/oracle_server.py"], ("FLAGS_", "GLOG_", "OMP_", "PYTHONWARNINGS"))


def run(*words, cwd=None, timeout=300, attempts=1, **env):
    """Runs SCRIPT or -c CODE with arguments, in this environment with what env says besides, and without our package. A program
    that takes longer than `timeout` seconds is ended, and run again while there are attempts: Paddle's DataLoader with
    workers waits for ever in one run of a hundred."""
    env = {**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **ENVIRONMENT, **env}
    for _ in range(attempts - 1):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return _paddle.run(words, env, cwd, timeout)
    return _paddle.run(words, env, cwd, timeout)


def ask(*words, **options):
    """Runs, and returns what it printed; a program that fails fails the test."""
    done = run(*words, **options)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout
