"""Programs on Proa, for tests: run() is subprocess.run of `python -m proa`, without the imports (proa_server.py). oracle.run() is
the same on real Paddle."""
import os
import sys

from conftest import ROOT
from forked import Forked

_proa = Forked([sys.executable, ROOT / "tests/proa_server.py"], ("FLAGS_", "OMP_", "PYTHONWARNINGS"))


def run(*words, cwd=None, timeout=300, **env):
    """Runs SCRIPT with arguments, in this environment with what env says besides."""
    return _proa.run(words, {**os.environ, **env}, cwd, timeout)
