"""DataLoader's workers: their errors, their deaths, and that none is left behind."""
import gc
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import proa as paddle
import pytest
from proa.io import DataLoader, Dataset, IterableDataset


class Rows(Dataset):
    """Sample i is i, large enough for shared memory; at `at` something happens."""

    def __init__(self, n=24, at=None, act=None):
        self.n, self.at, self.act = n, at, act

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.at:
            self.act()
        return np.full(9000, i, "float32"), i


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def fail(error):
    def act():
        raise error
    return act


def values(loader):
    return [b[0].numpy()[:, 0].tolist() for b in loader]


def gone(pids):
    def alive(pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rpartition(")")[2].split()[0] not in "ZX"
        except FileNotFoundError:
            return False
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("shared", [True, False])
def test_same_batches_with_workers(workers, shared):
    want = values(DataLoader(Rows(), batch_size=5))
    assert values(DataLoader(Rows(), batch_size=5, num_workers=workers, use_shared_memory=shared)) == want


def test_data_outlives_the_loader():
    batches = list(DataLoader(Rows(), batch_size=4, num_workers=2))
    copies = [b[0].numpy().copy() for b in batches]
    batches[0][0][0] = 7.0                                      # a batch may be written to
    assert all((b[0].numpy() == c).all() for b, c in zip(batches[1:], copies[1:]))


@pytest.mark.parametrize("error, kind", [(ValueError("bad row"), ValueError), (KeyError("bad row"), KeyError),
                                         (TwoArguments("bad row", 2), RuntimeError),
                                         (StopIteration("bad row"), RuntimeError)])
def test_a_workers_error_comes_with_its_traceback(error, kind):
    with pytest.raises(kind) as caught:
        list(DataLoader(Rows(24, 9, fail(error)), batch_size=2, num_workers=2))
    text = str(caught.value)
    assert "DataLoader worker(0)" in text and "bad row" in text and "__getitem__" in text


def test_without_workers_the_error_is_the_users():
    with pytest.raises(ValueError, match="^bad row$"):
        list(DataLoader(Rows(24, 9, fail(ValueError("bad row"))), batch_size=2))


def test_errors_in_init_fn_and_stream():
    class Stream(IterableDataset):
        def __iter__(self):
            yield 1.0
            raise OSError("no more")

    with pytest.raises(ValueError, match="worker 1 says no"):
        def init(i):
            if i == 1:
                raise ValueError(f"worker {i} says no")
        list(DataLoader(Rows(), num_workers=2, worker_init_fn=init))
    with pytest.raises(OSError, match="no more"):
        for _ in DataLoader(Stream(), batch_size=1, num_workers=1):     # list() would ask for its length
            pass


def test_a_killed_worker_is_an_error():
    loader = DataLoader(Rows(24, 9, lambda: os.kill(os.getpid(), signal.SIGKILL)), batch_size=2, num_workers=2)
    iterator = iter(loader)
    pids = [p.pid for p in iterator.processes]
    with pytest.raises(RuntimeError, match="killed by SIGKILL"):
        list(iterator)
    assert gone(pids)
    with pytest.raises(RuntimeError, match="exit code 3"):
        list(DataLoader(Rows(24, 9, lambda: os._exit(3)), batch_size=2, num_workers=2))


def test_timeout():
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="timeout=0.3"):
        list(DataLoader(Rows(24, 3, lambda: time.sleep(60)), batch_size=2, num_workers=2, timeout=0.3))
    assert time.monotonic() - start < 10


def test_leaving_a_loop_early_ends_the_workers():
    iterator = iter(DataLoader(Rows(), batch_size=2, num_workers=2))
    next(iterator)
    pids = [p.pid for p in iterator.processes]
    del iterator
    assert gone(pids)


def test_persistent_workers_stay_and_start_over():
    loader = DataLoader(Rows(), batch_size=5, num_workers=2, persistent_workers=True)
    want = values(DataLoader(Rows(), batch_size=5))
    assert values(loader) == want
    pids = [p.pid for p in loader._iterator.processes]
    next(iter(loader))                                          # left in the middle
    assert values(loader) == want and [p.pid for p in loader._iterator.processes] == pids


def test_workers_compute_with_one_thread():
    class Product(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            x = paddle.ones([64, 64]) * float(i)
            return paddle.matmul(x, x), len(os.listdir("/proc/self/task"))

    paddle.matmul(paddle.ones([512, 512]), paddle.ones([512, 512]))     # the parent has its threads
    batches = list(DataLoader(Product(), batch_size=2, num_workers=2))
    assert [float(b[0][1, 0, 0]) for b in batches] == [64.0, 64.0 * 9]
    assert all(int(n) == 1 for b in batches for n in b[1].numpy())


SCRIPT = textwrap.dedent("""
    import os, sys, time
    import numpy as np
    from proa.io import DataLoader, Dataset
    class Slow(Dataset):
        def __len__(self): return 100
        def __getitem__(self, i):
            time.sleep(0 if i < 4 else 60)
            return np.zeros(5, "float32")
    iterator = iter(DataLoader(Slow(), batch_size=2, num_workers=2))
    next(iterator)
    print(*[p.pid for p in iterator.processes], flush=True)
    for _ in iterator: pass
""")


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_orphan(sig):
    # A job in the background of a shell ignores SIGINT, and its children inherit that.
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + SCRIPT
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pids = [int(p) for p in child.stdout.readline().split()]
    assert len(pids) == 2
    child.send_signal(sig)
    error = child.communicate(timeout=20)[1]
    assert gone(pids)
    if sig == signal.SIGINT:
        assert error.rstrip().endswith("KeyboardInterrupt")


def test_nothing_is_left_behind():
    def state():
        gc.collect()  # loaders of earlier tests that a cycle keeps go now, not between the two
        return len(os.listdir("/proc/self/fd")), len([f for f in os.listdir("/dev/shm") if "proa" in f])
    list(DataLoader(Rows(), batch_size=4, num_workers=2))
    before = state()
    for _ in range(5):
        list(DataLoader(Rows(), batch_size=4, num_workers=2))
    assert state() == before
