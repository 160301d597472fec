"""Copies beside computation on gpu:0 (emulated, unless PROA_GPU says that there is one): results that are fetched. The emulator
does the work of one stream as late as it may, so that an event that nobody waits for shows in the numbers."""
import os
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT  # finds the others
import proa as paddle
import test_devices
from proa import _core

pytestmark = pytest.mark.usefixtures("gpu")
LATE = ["copies", "compute"]


def count(name):
    return _core.device_property("gpu:0", name)


def fetched():
    """A result that is fetched is that of the work queued before it, in pieces as well as in one."""
    _core.set_device("gpu:0")
    for n in 10, 3 << 20:
        x = _core.to_tensor(np.arange(n, dtype="float32"))
        y = x * 2 + 1
        before = count("waits")
        np.testing.assert_array_equal(y.numpy(), np.arange(n, dtype="float32") * 2 + 1)
        assert count("waits") - before <= 1 + n * 4 // (2 << 20)
    _core.set_device("cpu")


def test_results_are_fetched():
    fetched()


@pytest.mark.skipif(bool(os.environ.get("PROA_GPU")), reason="the emulator's")
@pytest.mark.parametrize("late", LATE)
def test_whichever_stream_is_late(late):
    script = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests/python")!r}]
import test_cuda_streams as t
t._core.load_devices(str(t.test_devices.plugin_of("gpu:0")))
t.fetched()
"""
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PROA_EMULATE_LATE": late}, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
