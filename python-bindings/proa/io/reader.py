"""DataLoader: makes a dataset's batches in this process, or ahead of use in worker processes."""
import collections
import os
import signal
import socket
import sys
import time
import warnings
import weakref

from . import transport
from .. import _core
from .batch_sampler import BatchSampler
from .collate import default_collate_fn, default_convert_fn, map_arrays, to_tensors
from .dataset import IterableDataset
from .worker import Fetcher, run


_tuning = {"on": False, "steps": 500}


def set_autotune_config(use_autotune, tuning_steps=500):
    """Whether loaders made from now on measure the number of workers, over how many batches."""
    _tuning.update(on=use_autotune, steps=tuning_steps)


class _Endless:
    """Index lists for a stream, whose workers only count them."""

    def __init__(self, batch_size):
        self.batch_size = batch_size

    def __iter__(self):
        while True:
            yield [None] * self.batch_size


class _DataLoaderIterBase:
    """An iterator over a loader's batches."""

    def __iter__(self):
        return self


class _Here(_DataLoaderIterBase):
    """Batches made in this process."""

    def __init__(self, loader):
        self.fetcher, self.tasks = loader._make_fetcher(), iter(loader._tasks())
        self.place = "cpu" if loader._device() else None    # where its arrays become tensors

    def __next__(self):
        return to_tensors(self.fetcher.fetch(next(self.tasks)), self.place)


class _Ahead(_DataLoaderIterBase):
    """Another iterator's batches on a device: each is sent there, through pinned memory and beside what the device is
    doing, while the one before it is in use."""

    def __init__(self, batches, device, ahead=1):
        self.batches, self.device, self.ahead = batches, device, ahead
        self.sent, self.over = collections.deque(), False

    def __len__(self):
        return len(self.batches)

    def _send(self):
        """One more on its way; an error comes out when its turn has come."""
        try:
            batch = next(self.batches)
            self.sent.append((map_arrays(batch, lambda t: _core.send(t, self.device)), None))
        except BaseException as problem:  # noqa: BLE001: raised later
            self.sent.append((None, problem))
            self.over = True

    def __next__(self):
        while not self.over and len(self.sent) <= self.ahead:
            self._send()
        if not self.sent:
            raise StopIteration
        batch, problem = self.sent.popleft()
        if problem is not None:
            raise problem
        map_arrays(batch, _core.arrive)
        return batch


def _end_workers(pid, channels, processes, patience=1.0):
    """Closes the sockets, waits, then kills. Does nothing in a forked child."""
    if os.getpid() != pid:
        return
    for c in channels:
        c.close()
    until = time.monotonic() + patience
    for p in processes:
        p.join(max(0.0, until - time.monotonic()))
    for p in processes:
        if p.is_alive():
            p.kill()
    for p in processes:
        p.join()
        p.close()


class _Workers(_DataLoaderIterBase):
    """Batches made by worker processes, in order. Each worker has a socket of its own and no lock is shared, so
    a worker may end at any moment without harm to the others."""

    def __init__(self, loader):
        import multiprocessing
        import threading

        import numpy as np
        self.loader, self.count = loader, loader.num_workers
        self.capacity = loader.prefetch_factor * self.count
        seed = int(np.random.randint(low=0, high=sys.maxsize))      # drawn before the order is, as Paddle does
        fork = multiprocessing.get_context("fork")
        self.channels, self.processes, parents = [], [], []
        main = threading.current_thread() is threading.main_thread()
        sys.stdout.flush()
        self.finish = weakref.finalize(self, _end_workers, os.getpid(), self.channels, self.processes)
        for i in range(self.count):
            ours, theirs = socket.socketpair()
            parents.append(ours)
            self.channels.append(transport.Channel(ours))
            process = fork.Process(target=run, daemon=True, name=f"DataLoader worker {i}", args=(
                theirs, list(parents), os.getpid(), main, i, self.count, seed, loader._make_fetcher, loader.dataset,
                loader.worker_init_fn, loader.use_shared_memory))
            with warnings.catch_warnings():     # Python warns of forking beside threads; ours hold no lock then
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()
            self.processes.append(process)
        self._begin()

    def _begin(self):
        self.tasks, self.given, self.next = iter(self.loader._tasks()), 0, 0
        self.turn, self.streaming = 0, [True] * self.count
        self.waiting, self.arrived = {}, {}     # number → worker; number → (kind, value, memory)
        self.stale, self.over = set(), False
        for _ in range(self.capacity):
            self._give()

    def restart(self):
        """Starts over with the same processes; what is still on its way is thrown away when it comes."""
        stale = set(self.waiting) | self.stale
        first = self.given
        for c in self.channels:
            c.put("resume")
        self.tasks, self.next, self.turn = iter(self.loader._tasks()), first, 0
        self.streaming, self.waiting, self.arrived = [True] * self.count, {}, {}
        self.stale, self.over = stale, False
        for _ in range(self.capacity):
            self._give()
        return self

    def _give(self):
        """Hands the next task to the next worker in turn."""
        if not any(self.streaming):
            return
        indices = next(self.tasks, None)
        if indices is None:
            return
        while not self.streaming[self.turn]:
            self.turn = (self.turn + 1) % self.count
        self.waiting[self.given] = self.turn
        self.channels[self.turn].put((self.given, indices))
        self.given += 1
        self.turn = (self.turn + 1) % self.count

    def __len__(self):
        return len(self.loader)

    def __next__(self):
        if self.over:
            raise StopIteration
        try:
            while True:
                if self.next in self.arrived:
                    kind, value, memory = self.arrived.pop(self.next)
                    self.next += 1
                    if kind == "end":
                        continue
                    self._give()
                    if kind == "failure":
                        self._stop()
                        value()
                    return transport.unpack(value, memory, "cpu" if self.loader._device() else None)
                if self.next == self.given:
                    self.over = True
                    if not self.loader.persistent_workers:
                        self.finish()
                    raise StopIteration
                self._wait()
        except KeyboardInterrupt:
            self._stop()
            raise

    def _stop(self):
        self.over = True
        self.finish()
        if self.loader._iterator is self:
            self.loader._iterator = None

    def _wait(self):
        """Reads what has come; waits for more if nothing has."""
        import select
        wanted = self.waiting[self.next]
        poll = select.poll()
        by_fd = {c.fileno(): i for i, c in enumerate(self.channels)}
        for fd, i in by_fd.items():
            poll.register(fd, select.POLLIN | (select.POLLOUT if self.channels[i].out else 0))
        timeout = self.loader.timeout
        events = poll.poll(timeout * 1000 if timeout > 0 else None)
        if not events:
            self._stop()
            raise TimeoutError(f"DataLoader: worker {wanted} gave no batch within timeout={timeout} seconds")
        for fd, event in events:
            i = by_fd[fd]
            if event & select.POLLOUT:
                self.channels[i].flush()
            if event & ~select.POLLOUT:
                self._read(i)

    def _read(self, i):
        try:
            while (got := self.channels[i].get()) is not None:
                (number, kind, value), memory = got
                if number in self.stale:
                    self.stale.discard(number)
                    continue
                self.waiting.pop(number)
                self.arrived[number] = kind, value, memory
                if kind == "end" and self.streaming[i]:
                    self.streaming[i] = False
                    self._give()
        except EOFError:
            self._lost(i)

    def _lost(self, i):
        process = self.processes[i]
        process.join(1.0)
        pid, code = process.pid, process.exitcode
        self._stop()
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in signal.valid_signals() else str(-code)
            how = f"was killed by {name}" + (" (out of memory?)" if -code == signal.SIGKILL else "")
        else:
            how = f"ended with exit code {code}"
        raise RuntimeError(f"DataLoader: worker {i} (pid {pid}) {how}")


def _check(ok, message):
    if not ok:
        raise AssertionError(f"DataLoader: {message}")


class DataLoader:
    """Iterates over a dataset's batches as Tensors.

    num_workers: processes that make batches ahead of their use (0: made here), prefetch_factor of them each.
    timeout: seconds after which a worker that gives nothing is an error (0: wait). use_buffer_reader: where the device
    (the first of places, otherwise the current one) is a GPU, the next batch is brought there while one is in use.
    feed_list is accepted and has no effect.
    """

    def __init__(self, dataset, feed_list=None, places=None, return_list=True, batch_sampler=None, batch_size=1,
                 shuffle=False, drop_last=False, collate_fn=None, num_workers=0, use_buffer_reader=True,
                 prefetch_factor=2, use_shared_memory=True, timeout=0, worker_init_fn=None,
                 persistent_workers=False):
        _check(isinstance(num_workers, int) and num_workers >= 0,
               f"num_workers must be an int of at least 0, got {num_workers!r}")
        _check(prefetch_factor > 0, f"prefetch_factor must be positive, got {prefetch_factor!r}")
        _check(timeout >= 0, f"timeout must not be negative, got {timeout!r}")
        stream = isinstance(dataset, IterableDataset)
        if stream and shuffle:
            raise ValueError(f"DataLoader: an IterableDataset cannot be shuffled, got shuffle={shuffle}")
        if stream and batch_sampler is not None:
            raise ValueError("DataLoader: an IterableDataset takes no batch_sampler")
        if num_workers and not hasattr(os, "fork"):
            warnings.warn("DataLoader: worker processes need fork; num_workers=0 is used", stacklevel=2)
            num_workers = 0
        self.dataset, self.feed_list, self.places, self.return_list = dataset, feed_list, places, return_list
        self.collate_fn, self.num_workers, self.timeout = collate_fn, num_workers, timeout
        self.use_buffer_reader, self.prefetch_factor = use_buffer_reader, prefetch_factor
        self.use_shared_memory = use_shared_memory and num_workers > 0
        self.worker_init_fn, self.persistent_workers = worker_init_fn, persistent_workers
        self.drop_last, self.batch_size, self.batch_sampler = drop_last, None, None
        if batch_sampler is not None:
            _check(batch_size == 1 and not shuffle and not drop_last,
                   "batch_size, shuffle and drop_last cannot be set beside a batch_sampler")
            self.batch_sampler = batch_sampler
        elif batch_size is not None:
            _check(batch_size > 0, f"batch_size must be positive, got {batch_size!r}")
            self.batch_size = batch_size
            self.batch_sampler = _Endless(batch_size) if stream else BatchSampler(
                dataset, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last)
        self.auto_collate_batch = self.batch_sampler is not None
        self._iterator = None
        if _tuning["on"]:
            from .autotune import best_workers
            self.num_workers = best_workers(self, _tuning["steps"], use_shared_memory)
            self.use_shared_memory = use_shared_memory and self.num_workers > 0

    @staticmethod
    def from_generator(feed_list=None, capacity=None, use_double_buffer=True, iterable=True, return_list=False,
                       use_multiprocess=False, drop_last=True):
        """A loader over Python generators, as of Paddle 2.0 (generator_loader.py). It makes batches in the caller's thread:
        capacity, use_double_buffer and use_multiprocess have no effect."""
        from .generator_loader import GeneratorLoader
        return GeneratorLoader(feed_list, capacity, iterable, return_list)

    @staticmethod
    def from_dataset(dataset, places, drop_last=True):
        """A loader over a paddle.distributed.InMemoryDataset or QueueDataset: feeds, one dict a batch."""
        from .generator_loader import DatasetLoader
        return DatasetLoader(dataset, drop_last)

    def _make_fetcher(self):
        collate = self.collate_fn or (default_collate_fn if self.auto_collate_batch else default_convert_fn)
        return Fetcher(self.dataset, self.auto_collate_batch, collate, self.drop_last)

    def _tasks(self):
        if self.auto_collate_batch:
            return self.batch_sampler
        return _Endless(1) if isinstance(self.dataset, IterableDataset) else range(len(self.dataset))

    def __len__(self):
        if isinstance(self.dataset, IterableDataset):
            raise ValueError("DataLoader: an IterableDataset has no length")
        return len(self.batch_sampler if self.auto_collate_batch else self.dataset)

    def _device(self):
        """The device to which batches are prefetched; None: there is no prefetch."""
        place = (self.places or [None])[0] if isinstance(self.places, (list, tuple)) else self.places
        device = _core.get_device() if place is None else place if isinstance(place, str) else place._device_name()
        return device if self.use_buffer_reader and device != "cpu" else None

    def __iter__(self):
        device, batches = self._device(), self._batches()
        return _Ahead(batches, device) if device else batches

    def _batches(self):
        if self.num_workers == 0:
            return _Here(self)
        if not self.persistent_workers:
            return _Workers(self)
        if self._iterator is None:
            self._iterator = _Workers(self)
            return self._iterator
        return self._iterator.restart()

    def __call__(self):
        return iter(self)
