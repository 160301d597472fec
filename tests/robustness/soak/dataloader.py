"""DataLoader soak: epochs with workers killed at random. No orphan, no leak of memory, descriptors or processes.

usage: python tests/robustness/soak/dataloader.py [epochs, default 200]   (by hand; a few minutes)
"""
import gc
import os
import random
import signal
import sys
import threading
import time

import numpy as np
from proa.io import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        time.sleep(0.0005)
        return np.full((64, 64), i, "float32"), i


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def children():
    pids = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as f:
            pids += f.read().split()
    return pids


def epoch(kill, rng):
    """True if the epoch ended well; a killed worker must be a RuntimeError."""
    iterator = iter(DataLoader(Rows(), batch_size=4, num_workers=rng.choice((1, 2, 3))))
    if kill:
        victim, delay = rng.choice(iterator.processes).pid, rng.random() * 0.03

        def strike():
            time.sleep(delay)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:      # it had ended
                pass
        killer = threading.Thread(target=strike)
        killer.start()
    try:
        seen = 0
        for rows, numbers in iterator:
            assert rows.numpy()[:, 0, 0].tolist() == numbers.numpy().tolist()
            seen += len(numbers)
        assert seen == 64
        return True
    except RuntimeError as e:
        assert kill and "killed by SIGKILL" in str(e), e
        return False
    finally:
        if kill:
            killer.join()


def main():
    epochs, rng = int(sys.argv[1]) if len(sys.argv) > 1 else 200, random.Random(4)
    for _ in range(10):
        epoch(True, rng)
    gc.collect()
    memory, fds, failed = resident(), len(os.listdir("/proc/self/fd")), 0
    for _ in range(epochs):
        failed += not epoch(rng.random() < 0.5, rng)
    gc.collect()
    grown = resident() - memory
    print(f"{epochs} epochs, {failed} ended by a kill; resident {grown / 2 ** 20:+.1f} MiB, "
          f"descriptors {len(os.listdir('/proc/self/fd')) - fds:+d}, children {len(children())}")
    bad = not failed or children() or len(os.listdir("/proc/self/fd")) != fds or grown > max(memory // 100, 4 << 20)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
