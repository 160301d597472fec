"""A worker of a job with parameter servers, beside its program: joining, first values, GEO, files."""
import atexit
import functools
import os
import sys

from .... import _core
from ....framework import mode as _mode
from ....static.scope import global_scope
from ....framework.tensor_file import write_tensor

_CHUNK = 1 << 22  # values of a table that are read or written at once


def _at_once(method):
    """A method whose tensors are computed at once, whatever program is open."""
    @functools.wraps(method)
    def call(*args, **kwargs):
        with _mode.eager():
            return method(*args, **kwargs)
    return call


def _need(scope, name):
    found = scope.find_var(name)
    if found is None or found.value is None:
        raise RuntimeError(f"fleet: the scope has no value of {name!r}: run the startup program before fleet.init_worker()")
    return found.value


class Worker:
    """A worker's connection, and its job's tables."""

    def __init__(self, job, role_maker):
        self.job, self._steps, self._old = job, 0, {}
        self._number, self._workers = role_maker._worker_index(), role_maker._worker_num()
        self._client = _core.ps_connect(",".join(role_maker._get_pserver_endpoints()), self._number, self._workers,
                                        job is not None and job.mode == "sync", 0.0)
        atexit.register(self._leave)
        for table in job.tables if job else ():
            _core.ps_table(self._client, table.number, table.options)

    def _leave(self):
        """At the process's end: not a farewell if an exception is its cause, for the others must not go on without this worker."""
        if not hasattr(sys, "last_value"):
            self.stop()

    def stop(self):
        """Leaves the servers; they and the other workers go on."""
        if self._client is not None:
            atexit.unregister(self._leave)
            client, self._client = self._client, None
            if self.job is not None:
                self.job.main._after_run = None
            _core.ps_close(client)

    def barrier(self):
        """Waits for all workers."""
        _core.ps_barrier(self._client)

    # ---- first values

    @_at_once
    def start(self, scope=None):
        """Worker 0's values go to the servers, and all workers take what is there before any of them trains."""
        scope = scope or global_scope()
        if self._number == 0:
            for table in self.job.sparse:
                if not table.grows and not _core.ps_rows(self._client, table.number):
                    self._give_rows(table, _need(scope, table.name))
            if self.job.dense is not None:
                _core.ps_set_dense(self._client, self.job.dense.number, self._flat(scope))
        self.barrier()
        self.pull_dense(scope)
        if self.job.mode == "geo":
            self._start_geo(scope)
        self.barrier()  # a worker that is slow to read the first values must not find those of another's first step

    def _give_rows(self, table, value):
        import numpy as np
        step = max(1, _CHUNK // table.width)
        for at in range(0, table.rows, step):
            ids = np.arange(at, min(at + step, table.rows), dtype=np.int64)
            _core.ps_set(self._client, table.number, _core.from_numpy(ids), value[at:at + step].clone())

    def rows_of(self, table):
        """All rows of a table as an array, read without being counted."""
        import numpy as np
        rows, step = np.zeros([table.rows, table.width], np.float32), max(1, _CHUNK // table.width)
        for at in range(0, table.rows, step):
            ids = np.arange(at, min(at + step, table.rows), dtype=np.int64)
            rows[at:at + step] = _core.ps_pull(self._client, table.number, _core.from_numpy(ids), table.width, True).numpy()
        return rows

    # ---- dense parameters

    def _flat(self, scope):
        flat = [_core.reshape(_need(scope, name), [-1]) for name, _ in self.job.dense.params]
        return _core.concat(flat, 0) if len(flat) > 1 else flat[0].clone()

    @_at_once
    def pull_dense(self, scope=None):
        """The servers' dense parameters go into the scope."""
        table, scope, at = self.job.dense, scope or global_scope(), 0
        if table is None:
            return
        flat = _core.ps_pull_dense(self._client, table.number, table.width)
        for name, shape in table.params:
            value = _need(scope, name)
            n = int(value.size)
            value.set_value(_core.reshape(flat[at:at + n], shape))
            at += n

    # ---- GEO (Paddle's communicator): differences of local training go to the servers every k steps

    def _start_geo(self, scope):
        for table in self.job.sparse:
            value = _need(scope, table.name)
            rows = self.rows_of(table)
            value.set_value(rows)
            self._old[table.name] = rows
        if self.job.dense is not None:
            self._old[None] = self._flat(scope).numpy().copy()
        self.job.main._after_run = self._count

    def _count(self, scope):
        self._steps += 1
        if self._steps % self.job.k_steps == 0:
            for table in self.job.sparse:
                self._exchange_rows(table, _need(scope, table.name))
            if self.job.dense is not None:
                self._exchange_dense(scope)

    def _exchange_rows(self, table, value):
        """Rows that moved since the last exchange: a worker's share of the difference goes to the servers; then what others
        changed comes, on top of what is here."""
        import numpy as np
        local, old = value.numpy(), self._old[table.name]
        ids = np.flatnonzero((local != old).any(axis=1)).astype(np.int64)
        share = (local[ids] - old[ids]) / np.float32(self._workers)
        old[ids] += share
        if len(ids):
            _core.ps_push(self._client, table.number, _core.from_numpy(ids), _core.from_numpy(np.ascontiguousarray(share)), 0.0)
        ids, rows = (t.numpy() for t in _core.ps_pull_changed(self._client, table.number, table.width))
        local[ids] += rows - old[ids]
        old[ids] = rows
        value.set_value(local)

    def _exchange_dense(self, scope):
        import numpy as np
        table, old = self.job.dense, self._old[None]
        local = self._flat(scope).numpy()
        share = (local - old) / np.float32(self._workers)
        old += share
        _core.ps_push_dense(self._client, table.number, _core.from_numpy(share), 0.0)
        latest = _core.ps_pull_dense(self._client, table.number, table.width).numpy()
        local, at = local + (latest - old), 0
        old[:] = latest
        for name, shape in table.params:
            value = _need(scope, name)
            n = int(value.size)
            value.set_value(local[at:at + n].reshape(shape))
            at += n

    # ---- files

    @_at_once
    def save(self, dirname, mode):
        """Sparse tables: the servers write their rows, and this worker a table that does not grow as a whole. Dense parameters and
        the program's other persistables: a file each."""
        self.save_dense(dirname)
        for table in self.job.sparse:
            _core.ps_save(self._client, table.number, os.path.abspath(dirname), mode)
            if not table.grows:
                _write(self.rows_of(table), dirname, table.name)

    @_at_once
    def save_dense(self, dirname, scope=None, chosen=None):
        """Dense parameters and the program's other persistables (chosen: those of these names), a file each."""
        names, main, scope = {t.name for t in self.job.sparse}, self.job.main, scope or global_scope()
        self.pull_dense(scope)
        os.makedirs(dirname, exist_ok=True)
        rate = main._optimizer._rate_vars.get(main) if main._optimizer is not None else None
        for name in sorted(set(main._persistables()) - names - {rate.name if rate is not None else None}):
            found = scope.find_var(name) if chosen is None or name in chosen else None
            if found is not None and found.value is not None:
                _write(found.value.numpy(), dirname, name)

    def table(self, who, number):
        """The sparse table of a number."""
        found = next((t for t in self.job.sparse if t.number == number), None)
        if found is None:
            raise ValueError(f"fleet.{who}: there is no sparse table {number!r}; there are { {t.number: t.name for t in self.job.sparse} }")
        return found

    @_at_once
    def save_table(self, number, dirname, mode):
        """The servers write the rows of one sparse table."""
        _core.ps_save(self._client, self.table("save_one_table", number).number, os.path.abspath(dirname), mode)

    @_at_once
    def load_table(self, number, dirname):
        """The servers read the rows of one sparse table."""
        _core.ps_load(self._client, self.table("load_one_table", number).number, os.path.abspath(dirname))

    @_at_once
    def load(self, dirname):
        """Reads what save wrote: dense parameters into the scope and to the servers, rows by the servers."""
        from ....fluid import io
        main, names = self.job.main, {t.name for t in self.job.sparse}
        there = [v for v in main.list_vars() if v.persistable and v.name not in names and os.path.isfile(os.path.join(dirname, v.name))]
        io.load_vars(None, dirname, main, vars=there)
        if self.job.dense is not None:
            _core.ps_set_dense(self._client, self.job.dense.number, self._flat(global_scope()))
        for table in self.job.sparse:
            _core.ps_load(self._client, table.number, os.path.abspath(dirname))

    def shrink(self, threshold):
        """A day ends: rows that nobody read for `threshold` days go."""
        for table in self.job.sparse:
            _core.ps_shrink(self._client, table.number, threshold)

    @_at_once
    def fill(self, program, scope=None):
        """Gives the program's tables that do not grow the servers' rows in the scope; returns the names of the others."""
        scope, missing = scope or global_scope(), []
        for table in self.job.sparse:
            if table.grows:
                missing.append(table.name)
            elif program._variable(table.name) is not None:
                scope.var(table.name).hold(_core.from_numpy(self.rows_of(table)))
        return missing


def _write(array, dirname, name):
    path = os.path.join(dirname, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with _core.FileWriter(path) as f:
        write_tensor(array, f)
