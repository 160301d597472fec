"""A DataLoader's worker process: takes lists of indices from its socket, sends batches back."""
import os
import signal
import sys

from .. import _core
from . import transport
from .dataset import IterableDataset

_info = None


class WorkerInfo:
    """The result of get_worker_info: id, num_workers, dataset, seed. Cannot be changed."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __setattr__(self, name, value):
        raise RuntimeError(f"WorkerInfo: {name} cannot be assigned")


def get_worker_info():
    """In a DataLoader's worker process, its WorkerInfo; elsewhere None."""
    return _info


class Failure:
    """An exception of a worker on its way to the loader."""

    def __init__(self, worker_id):
        import traceback
        self.worker_id, (self.kind, _, _), self.text = worker_id, sys.exc_info(), traceback.format_exc()

    def __reduce__(self):
        import pickle
        kind = self.kind
        try:
            pickle.dumps(kind)
        except Exception:       # a local class: its name is in the text
            kind = RuntimeError
        return _failure, (self.worker_id, kind, self.kind.__name__, self.text)


def _failure(worker_id, kind, name, text):
    return lambda: _raise(worker_id, kind, name, text)


def _raise(worker_id, kind, name, text):
    if issubclass(kind, (StopIteration, StopAsyncIteration)) or not issubclass(kind, Exception):
        kind = RuntimeError     # raised as itself it would end the loop in silence
    message = f"DataLoader worker({worker_id}) caught {name} with message:\n{text}"
    try:
        error = kind(message)
    except Exception:           # its constructor wants other arguments
        error = RuntimeError(message)
    raise error from None


class Fetcher:
    """Makes batches of a dataset: by indices, or for a stream by count."""

    def __init__(self, dataset, batched, collate, drop_last):
        self.dataset, self.batched, self.collate, self.drop_last = dataset, batched, collate, drop_last
        self.stream = iter(dataset) if isinstance(dataset, IterableDataset) else None

    def fetch(self, indices):
        """The next batch; StopIteration at a stream's end."""
        if self.stream is None:
            data = [self.dataset[i] for i in indices] if self.batched else self.dataset[indices]
        elif not self.batched:
            data = next(self.stream)
        else:
            data = [sample for _, sample in zip(indices, self.stream)]
            if not data or self.drop_last and len(data) < len(indices):
                raise StopIteration
        return self.collate(data) if self.collate else data


def seed_worker(base_seed, worker_id):
    """Seeds random, NumPy and Proa with Paddle's values for this worker."""
    import random

    import numpy as np
    random.seed(base_seed + worker_id)
    _core.seed(base_seed + worker_id)
    entropy = [worker_id, base_seed & 0xffffffff, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(entropy).generate_state(4))


def die_with_parent(parent, from_main_thread):
    """Ends this process when its parent ends, even in the middle of a sample."""
    def watch():
        import time
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if sys.platform == "linux" and from_main_thread:
        import ctypes
        if ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0) == 0:    # PR_SET_PDEATHSIG
            if os.getppid() != parent:
                os._exit(1)
            return
    # the death signal would come when the forking thread ends, so other threads' workers look for themselves
    import threading
    threading.Thread(target=watch, daemon=True).start()


def run(sock, parent_socks, parent, from_main_thread, worker_id, num_workers, seed, make_fetcher, dataset, init_fn,
        shared):
    """The worker's life. Messages in: (number, indices), "resume"; out: (number, batch), and so on."""
    global _info
    for s in parent_socks:
        s.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)        # Ctrl-C reaches the loader, which ends its workers
    die_with_parent(parent, from_main_thread)
    seed_worker(seed, worker_id)
    _info = WorkerInfo(id=worker_id, num_workers=num_workers, dataset=dataset, seed=seed)
    fetcher = failure = None
    try:
        if init_fn is not None:
            init_fn(worker_id)
        fetcher = make_fetcher()
    except Exception:
        failure = Failure(worker_id)
    try:
        while True:
            task = transport.receive(sock)
            if task == "resume":
                try:
                    fetcher, failure = make_fetcher(), None
                except Exception:
                    failure = Failure(worker_id)
                continue
            number, indices = task
            try:
                if failure is None:
                    batch, arrays, size = transport.pack(fetcher.fetch(indices), shared)
                    transport.send(sock, (number, "batch", batch), arrays, size)
                    continue
            except StopIteration:
                if fetcher.stream is not None:
                    transport.send(sock, (number, "end", None))
                    continue
                failure = Failure(worker_id)
            except (EOFError, BrokenPipeError, ConnectionError):
                raise
            except Exception:
                failure = Failure(worker_id)
            transport.send(sock, (number, "failure", failure))
            failure = None
    except (EOFError, BrokenPipeError, ConnectionError):    # the loader is done
        pass
