"""Jobs of ranks whose processes are forks of one that has imported Proa (launch_server.py)."""
import os
import sys

from conftest import ROOT
from forked import Forked

_launcher = Forked([sys.executable, "-u", ROOT / "tests/launch_server.py"], ("FLAGS_", "OMP_", "PYTHON"))


def passes(folder, ranks, script, *arguments, environment=None, limit=240):
    """Runs the script as so many ranks, through the launcher; returns their logs."""
    env = {**os.environ, "PROA_TIMEOUT": "60", "OMP_NUM_THREADS": "1", **(environment or {})}
    done = _launcher.run(["--nproc_per_node", ranks, "--log_dir", folder / "log", script, *arguments], env, timeout=limit)
    logs = "\n".join(p.read_text() for p in sorted((folder / "log").glob("workerlog.*")))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{logs}"
    return logs
