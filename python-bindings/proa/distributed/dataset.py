"""Data sets of text files for Executor.train_from_dataset: a line is a sample, and for each variable has the number of its
values and then the values ("3 0.1 0.2 0.3 1 7"). QueueDataset streams the files, InMemoryDataset holds and shuffles them."""
import random
import subprocess

from .. import _core
from . import communication, objects
from .group import join_workers, world

__all__ = ["InMemoryDataset", "QueueDataset"]


class _Dataset:
    _settings = {"batch_size": 1, "thread_num": 1, "use_var": None, "pipe_command": "cat", "input_type": 0,
                 "fs_name": "", "fs_ugi": "", "download_cmd": "cat"}

    def __init__(self):
        self._files = []
        self._set(dict(self._settings))

    def _set(self, values):
        for key, value in values.items():
            setattr(self, "_" + key, value)

    def _checked(self, kwargs, who):
        unknown = set(kwargs) - set(self._settings)
        if unknown:
            raise ValueError(f"{type(self).__name__}.{who}: there is no setting {sorted(unknown)[0]!r}; there are "
                             f"{', '.join(self._settings)}")
        if kwargs.get("fs_name") or kwargs.get("fs_ugi"):
            raise ValueError(f"{type(self).__name__}.{who}: files come from this machine: fs_name and fs_ugi must be "
                             "empty; a pipe_command may fetch them")
        size = kwargs.get("batch_size", 1)
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"{type(self).__name__}.{who}: batch_size must be at least 1, got {size!r}")
        return kwargs

    def init(self, **kwargs):
        """batch_size, use_var (variables in the order of a line), pipe_command (a shell command that each file is piped
        through, "cat"), thread_num (kept: batches run one after the other)."""
        self._set({**self._settings, **self._checked(kwargs, "init")})

    def set_filelist(self, filelist):
        """The paths of the files, in the order in which they are read."""
        if not isinstance(filelist, (list, tuple)):
            raise TypeError(f"{type(self).__name__}.set_filelist: expected a list of paths, got "
                            f"{type(filelist).__name__}")
        self._files = [str(path) for path in filelist]

    # samples: a list of values a variable

    def _read(self):
        variables = self._variables()
        for path in self._files:
            with open(path, "rb") as f:
                with subprocess.Popen(self._pipe_command, shell=True, stdin=f, stdout=subprocess.PIPE) as pipe:
                    for number, line in enumerate(pipe.stdout, 1):
                        if line.strip():
                            yield _sample(line.split(), variables, path, number)
                if pipe.returncode:
                    raise RuntimeError(f"{path}: {self._pipe_command!r} ended with {pipe.returncode}")

    def _variables(self):
        if not self._use_var:
            raise ValueError(f"{type(self).__name__}: init(use_var=[...]) says which variables a line is for")
        for var in self._use_var:
            if var.dtype not in (_core.float32, _core.int64):
                raise ValueError(f"{type(self).__name__}: use_var must be float32 or int64, {var.name!r} is {var.dtype}")
        return list(self._use_var)

    def _samples(self):
        return self._read()

    def _batches(self, drop_last=False):
        """Feeds for an Executor, of batch_size samples each; the last may have fewer, or be left out."""
        rows = []
        for sample in self._samples():
            rows.append(sample)
            if len(rows) == self._batch_size:
                yield self._feed(rows)
                rows = []
        if rows and not drop_last:
            yield self._feed(rows)

    def _feed(self, rows):
        return {var.name: _joined(var, [row[i] for row in rows]) for i, var in enumerate(self._use_var)}


def _sample(words, variables, path, number):
    sample, at = [], 0
    for var in variables:
        try:
            count = int(words[at])
            values = words[at + 1:at + 1 + count]
            if count < 1 or len(values) < count:
                raise ValueError
            sample.append([int(v) for v in values] if var.dtype == _core.int64 else [float(v) for v in values])
        except (ValueError, IndexError):
            raise ValueError(f"{path}:{number}: the values of {var.name!r} should be here, as their number (at least 1) "
                             f"and then each, at word {at + 1}") from None
        at += 1 + count
    if at != len(words):
        raise ValueError(f"{path}:{number}: {len(words) - at} words more than the {len(variables)} variables take")
    return sample


def _workers(fleet, who):
    """The group of fleet's workers; None: there is one."""
    fleet = getattr(fleet, "fleet", fleet)  # the module, too
    if fleet is None or fleet.worker_num() < 2:
        return None
    if getattr(fleet, "_role_maker", None) is not None and not fleet._is_collective:
        join_workers(fleet._role_maker)
    group = world()
    if group.nranks != fleet.worker_num():
        raise RuntimeError(f"InMemoryDataset.{who}: fleet has {fleet.worker_num()} workers, and this process is in a group of "
                           f"{group.nranks}; fleet.init(is_collective=True) or init_parallel_env() joins the others")
    return group


def _summed(n, fleet, who):
    import numpy as np
    group, total = _workers(fleet, who), np.array([n], np.int64)
    if group is not None:
        total = _core.from_numpy(total)
        communication.all_reduce(total, group=group)
        total = total.numpy()
    return total[0]


def _columns(samples, variables):
    """Samples as two arrays a variable: how many values each has, and all values."""
    import numpy as np
    kinds = [np.int64 if var.dtype == _core.int64 else np.float64 for var in variables]
    return [(np.array([len(sample[i]) for sample in samples], np.int64), np.array([v for sample in samples for v in sample[i]], kind))
            for i, kind in enumerate(kinds)]


def _rows(columns):
    """The samples that _columns made arrays of."""
    import numpy as np
    values = [[part.tolist() for part in np.split(flat, np.cumsum(counts))[:-1]] for counts, flat in columns]
    return [list(sample) for sample in zip(*values)]


def _joined(var, lists):
    """The samples' values as what is fed to var."""
    import numpy as np
    kind = np.int64 if var.dtype == _core.int64 else np.float32
    if not var.lod_level:
        try:
            return np.array(lists, kind).reshape([len(lists), *var.shape[1:]])
        except ValueError:
            raise ValueError(f"the samples of {var.name!r} have {sorted({len(v) for v in lists})} values, its shape is "
                             f"{list(var.shape)}; give it lod_level=1 if they differ") from None
    from ..static.scope import ScopeTensor
    fed = ScopeTensor()
    fed.set(np.array([v for values in lists for v in values], kind).reshape([-1, 1]))
    fed.set_recursive_sequence_lengths([[len(v) for v in lists]])
    return fed


class QueueDataset(_Dataset):
    """Reads its files as it goes, in their order.

    >>> import proa as paddle
    >>> dataset = paddle.distributed.QueueDataset()
    >>> dataset.init(batch_size=32)
    >>> dataset.set_filelist(["part-0.txt"])
    """


class InMemoryDataset(_Dataset):
    """Reads its files once, and can shuffle the samples."""

    _settings = {**_Dataset._settings, "data_feed_type": "MultiSlotInMemoryDataFeed", "queue_num": None, "fea_eval": False,
                 "candidate_size": 10000, "fleet_send_batch_size": 1024, "fleet_send_sleep_seconds": 0}

    def __init__(self):
        super().__init__()
        self._memory, self._shuffled = None, 0

    def update_settings(self, **kwargs):
        """Changes what init set. Without effect: queue_num, fea_eval and candidate_size (slots_shuffle moves the values of all
        samples), fleet_send_batch_size and fleet_send_sleep_seconds (global_shuffle sends a worker's samples at once)."""
        self._set(self._checked(kwargs, "update_settings"))

    def set_date(self, date):
        """Says which day's data these are, "YYYYMMDD"; only GPU parameter servers, which Proa has not, read it."""
        import datetime
        try:
            self._date = datetime.datetime.strptime(str(date), "%Y%m%d").date()
        except ValueError:
            raise ValueError(f"set_date: date must be 'YYYYMMDD', got {date!r}") from None

    def load_into_memory(self, is_shuffle=False):
        """Reads the files."""
        self._memory = list(self._read())
        if is_shuffle:
            self.local_shuffle()

    def preload_into_memory(self, thread_num=None):
        """As load_into_memory; wait_preload_done may follow."""
        self.load_into_memory()

    def wait_preload_done(self):
        """Everything was read when preload_into_memory returned."""

    def _need(self, who):
        if self._memory is None:
            raise RuntimeError(f"InMemoryDataset.{who}: load_into_memory comes first")
        return self._memory

    def local_shuffle(self):
        """Shuffles the samples of this process."""
        random.shuffle(self._need("local_shuffle"))

    def global_shuffle(self, fleet=None, thread_num=12):
        """Shuffles the samples of all workers of `fleet`: each goes to a worker that is drawn for it. All workers call it.
        Without fleet: the samples of this process."""
        memory, group = self._need("global_shuffle"), _workers(fleet, "global_shuffle")
        if group is not None:
            parts = [[] for _ in group.ranks]
            for sample in memory:
                random.choice(parts).append(sample)
            came = objects.exchange([_columns(part, self._variables()) for part in parts], group)
            memory[:] = [sample for columns in came for sample in _rows(columns)]
        self.local_shuffle()
        self._shuffled = len(memory)

    def slots_shuffle(self, slots):
        """Shuffles the values of these variables among the samples."""
        memory = self._need("slots_shuffle")
        names = [var.name for var in self._use_var]
        for slot in slots:
            if slot not in names:
                raise ValueError(f"InMemoryDataset.slots_shuffle: {slot!r} is none of {names}")
            i = names.index(slot)
            values = [sample[i] for sample in memory]
            random.shuffle(values)
            for sample, value in zip(memory, values):
                sample[i] = value

    def release_memory(self):
        """Lets go of the samples."""
        self._memory, self._shuffled = None, 0

    def get_memory_data_size(self, fleet=None):
        """The number of samples that were read; with fleet, by all workers, which all call it."""
        return _summed(len(self._memory or ()), fleet, "get_memory_data_size")

    def get_shuffle_data_size(self, fleet=None):
        """The number of samples after global_shuffle; with fleet, of all workers, which all call it."""
        return _summed(self._shuffled, fleet, "get_shuffle_data_size")

    def _samples(self):
        return self._need("load_into_memory")
