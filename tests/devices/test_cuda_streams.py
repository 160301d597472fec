"""Copies beside computation on gpu:0 (emulated, unless PROA_GPU says that there is one): batches that are brought there
ahead of their use, and results that are fetched. The emulator does the work of one stream as late as it may, so that
an event that nobody waits for shows in the numbers."""
import os
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT  # finds the others
import proa as paddle
from proa import _core

pytestmark = pytest.mark.usefixtures("gpu")
LATE = ["copies", "compute"]


def count(name):
    return _core.device_property("gpu:0", name)


class Rows(paddle.io.Dataset):
    """Sample i is a row of i and a label i; one of them may be bad."""

    def __init__(self, n=24, bad=None):
        self.n, self.bad = n, bad

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.bad:
            raise ValueError("sample 5 is bad")
        return np.full(700, i, "float32"), np.int64(i)


def epoch(**options):
    """Sums over an epoch, made on the GPU of batches that are dropped at once; how many tensors were sent, and how
    often the host waited and asked the driver for memory."""
    _core.set_device("gpu:0")
    loader, sums = paddle.io.DataLoader(Rows(), batch_size=4, **options), []
    before = [count(n) for n in ("sent", "waits", "driver_allocations")]
    for x, y in loader:
        assert str(x.place).startswith("Place(gpu") and y.dtype == paddle.int64
        sums.append(((x * 2).sum(axis=1) + y.astype("float32")).sum())
    counted = [count(n) - b for n, b in zip(("sent", "waits", "driver_allocations"), before)]
    got = [float(s) for s in sums]
    _core.set_device("cpu")
    want = [float(sum(1401 * i for i in range(b, b + 4))) for b in range(0, 24, 4)]
    np.testing.assert_allclose(got, want)
    return counted


def train(device, compiled):
    """The losses of two epochs of training that a DataLoader feeds; how often the second waited and took memory."""
    _core.set_device(device)
    paddle.seed(4)
    net = paddle.nn.Sequential(paddle.nn.Linear(700, 8), paddle.nn.GELU(True), paddle.nn.Linear(8, 24))
    opt = paddle.optimizer.Adam(1e-3, parameters=net.parameters())
    forward, losses, before = paddle.jit.to_static(net) if compiled else net, [], None
    loader = paddle.io.DataLoader(Rows(), batch_size=4)
    for _ in range(2):
        before = [count(n) for n in ("waits", "driver_allocations")]
        for x, y in loader:
            loss = paddle.nn.functional.cross_entropy(forward(x * 1e-2), y)
            loss.backward()
            opt.step()
            opt.clear_grad(set_to_zero=False)
            losses.append(loss)
    counted = [count(n) - b for n, b in zip(("waits", "driver_allocations"), before)]
    losses = [float(v) for v in losses]
    _core.set_device("cpu")
    return losses, counted


def training_is_fed(compiled=False):
    want, got = train("cpu", False), train("gpu:0", compiled)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4)
    assert got[1] == [0, 0], f"a step fed by a loader waited {got[1][0]} times and took memory {got[1][1]} times"


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


def every():
    first = epoch()
    assert first[0] == 12, "two tensors a batch are sent"
    assert epoch()[1:] == [0, 0], "batches come without a wait, and into memory that is there"
    assert epoch(num_workers=2)[0] == 12
    assert epoch(use_buffer_reader=False)[0] == 0
    training_is_fed()
    fetched()


def test_a_compiled_step_is_fed():
    training_is_fed(compiled=True)


def test_batches_come_ahead_and_results_are_fetched():
    every()


@pytest.mark.skipif(bool(os.environ.get("PROA_GPU")), reason="the emulator's")
@pytest.mark.parametrize("late", LATE)
def test_whichever_stream_is_late(late):
    script = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests")!r}, {str(ROOT / "tests/devices")!r}]
import test_cuda_streams as t
from test_devices import plugin_of
t._core.load_devices(str(plugin_of("gpu:0")))
t.every()
"""
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PROA_EMULATE_LATE": late},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_an_error_comes_in_its_turn():
    _core.set_device("gpu:0")
    got = []
    with pytest.raises(ValueError, match="sample 5 is bad"):
        for x, _ in paddle.io.DataLoader(Rows(bad=5), batch_size=2):
            got.append(float(x.sum()))
    _core.set_device("cpu")
    assert got == [700.0, 3500.0]


def test_batches_that_nobody_takes():
    _core.set_device("gpu:0")
    for x, _ in paddle.io.DataLoader(Rows(), batch_size=2):
        break
    live = [_core.send(_core.to_tensor(np.full(9, i, "float32"), place="cpu"), "gpu:0") for i in range(70)]
    for t in live:
        _core.arrive(t)
    # More than are kept ahead: the rest are copied as ever.
    assert [float(t.sum()) for t in live] == [9.0 * i for i in range(70)]
    del live, x
    _core.device_trim("gpu:0")
    assert float(_core.to_tensor(np.ones(3, "float32")).sum()) == 3
    _core.set_device("cpu")
