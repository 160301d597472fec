"""On a machine with a GPU (PROA_GPU): an illegal address ends a process's use of the GPU, and every later test of that process
would fail for it. A worker of pytest-xdist that has lost its GPU ends after the test that lost it, and xdist starts another."""
import os
import time

import numpy as np
import pytest


def lost():
    from proa import _core
    try:
        return _core.to_device(_core.from_numpy(np.ones(1)), "gpu:0").numpy()[0] != 1
    except Exception:  # noqa: BLE001: whatever it is, the GPU does not answer
        return True


failed = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if outcome.get_result().failed:
        failed.append(item.nodeid)


def pytest_runtest_logfinish(nodeid):
    if nodeid in failed and os.environ.get("PROA_GPU") and os.environ.get("PYTEST_XDIST_WORKER") and lost():
        time.sleep(0.5)  # what has been reported reaches the controller
        os._exit(3)
