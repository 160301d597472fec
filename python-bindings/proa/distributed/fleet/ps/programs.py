"""A worker's programs: look-ups pull rows, gradients go to the servers in place of updates, and dense parameters come back."""
from .... import _core
from ....autograd.guards import no_grad
from ....framework import mode as _mode
from . import tables as _tables

_ALONE = ("amp", "recompute", "gradient_merge", "sharding", "pipeline", "localsgd", "adaptive_localsgd", "dgc", "lars", "lamb",
          "fp16_allreduce", "tensor_parallel", "qat")


class Job:
    """A job as minimize found it: the mode, the tables, and the programs before and after."""

    def __init__(self, mode, k_steps, tables, main, origin):
        self.mode, self.k_steps, self.tables, self.main, self.origin = mode, k_steps, tables, main, origin

    @property
    def sparse(self):
        return [t for t in self.tables if not t.dense]

    @property
    def dense(self):
        return next((t for t in self.tables if t.dense), None)


def minimize(optimizer, strategy, loss, startup, parameter_list, no_grad_set):
    """(Job, operators, [(parameter, gradient)]): changes the loss's program and the startup program into a worker's. Servers do the
    same, and so know the tables."""
    from ....static.program import default_startup_program, program_guard
    from ....static.variable import program_of
    others = [name for name in _ALONE if strategy._message.get(name)]
    if others:
        raise NotImplementedError(f"fleet.minimize: {', '.join(others)} of the strategy does not go with parameter servers; switch it off")
    mode, k_steps = _tables.mode_of(strategy)
    program, startup = program_of(loss), startup or default_startup_program()
    program._planned("parameter servers")
    origin = program.clone()
    with program_guard(program, startup):
        if mode == "geo":
            return _local(optimizer, k_steps, loss, program, startup, origin, parameter_list, no_grad_set)
        return _on_servers(optimizer, mode, loss, program, startup, origin, parameter_list, no_grad_set)


def _local(optimizer, k_steps, loss, program, startup, origin, parameter_list, no_grad_set):
    """GEO: the worker's program steps by itself; tables take differences."""
    rule = (_tables.SUM, 0.0, 0.0, 0.0)
    sparse = _tables.sparse_tables(program, startup, "geo", rule)
    operators, pairs = optimizer.minimize(loss, startup, parameter_list, no_grad_set)
    names = {t.name for t in sparse}
    found = list(sparse)
    dense = [p for p, _ in pairs if p.name not in names]
    if dense:
        found.append(_tables.dense_table(len(sparse), dense, rule))
    return Job("geo", k_steps, found, program, origin), operators, pairs


def _on_servers(optimizer, mode, loss, program, startup, origin, parameter_list, no_grad_set):
    from ....optimizer.program import rate_variable
    from ....static.backward import append_backward
    rule = _tables.rule_of(optimizer)
    sparse = _tables.sparse_tables(program, startup, mode, rule)
    looked_up = lookups(program, sparse)
    pull_rows(program, sparse)
    looked_up = [(number, program._core.find(ids), program._core.find(out), padding) for number, ids, out, padding in looked_up]
    wanted = list(parameter_list or [p for params, _ in optimizer._groups() for p in params or ()] or program.all_parameters())
    names = {t.name for t in sparse}
    dense = [p for p in (program._variable(p if isinstance(p, str) else p.name) for p in wanted)
             if p.name not in names and not p.stop_gradient]
    pairs = append_backward(loss, dense + [out for _, _, out, _ in looked_up], no_grad_set)
    outs = {out.name for _, _, out, _ in looked_up}
    grads = {var.name: grad for var, grad in pairs}
    trained = [(p, g) for p, g in pairs if p.name not in outs]
    if not pairs:
        raise ValueError("fleet.minimize: no parameter of the program gets a gradient from the loss")
    found = list(sparse)
    if trained:
        found.append(_tables.dense_table(len(sparse), [p for p, _ in trained], rule))
    before = len(program._core.ops(0))
    recording = _core.set_recording(False)
    try:
        with _mode.opened(program._core, 2), no_grad():
            _exchange(sparse, looked_up, grads, trained, found[-1] if trained else None, rate_variable(optimizer, program))
    finally:
        _core.set_recording(recording)
    program._optimizer = optimizer
    leave_out(startup, {t.name for t in sparse if t.grows})
    operators = [op for wire in _core.describe(program._core, 0)[before:] for op in program._as_operators(wire)]
    return Job(mode, 0, found, program, origin), operators, trained


def pull_rows(program, sparse, test=False):
    """Puts pulls in place of look-ups in these tables. Pulls of a test (sparse_embedding's is_test) count for nothing."""
    for only_test in (False, True):
        chosen = [t for t in sparse if program._parameters[t.name].table_kind["is_test"] == only_test]
        if chosen:
            _core.pull_rows(program._core, [program._variable(t.name) for t in chosen], [t.number for t in chosen], test or only_test)


def lookups(program, sparse):
    """[(table's number, name of the ids, name of the rows, padding_idx)] of a program's look-ups that train."""
    numbers = {t.name: t.number for t in sparse if not program._parameters[t.name].table_kind["is_test"]}
    return [(numbers[inputs["W"][0]], inputs["Ids"][0], outputs["Out"][0], attrs.get("padding_idx", -1))
            for wire in _core.describe(program._core, 0) for kind, inputs, outputs, attrs, *_ in wire
            if kind == "lookup_table_v2" and inputs["W"][0] in numbers]


def _exchange(sparse, looked_up, grads, trained, dense, rate):
    """The operators at the end of a step. A table's gradients go in one message, so that a step averages over workers."""
    sent = None
    for table in sparse:
        mine = [(ids, grads[out.name], padding) for number, ids, out, padding in looked_up
                if number == table.number and out.name in grads]
        if len({padding for *_, padding in mine}) > 1:
            raise NotImplementedError(f"fleet.minimize: look-ups in {table.name!r} have several values of padding_idx; give them one")
        if mine:
            sent = _core.distributed_push_sparse([g for _, g, _ in mine], [i for i, *_ in mine], rate, table.number, mine[0][2])
    if dense is not None:
        sent = _core.ps_send([g for _, g in trained], rate, dense.number)
    if sent is None:
        raise ValueError("fleet.minimize: no look-up in a table gets a gradient from the loss")
    _core.ps_send_barrier(sent)
    if dense is not None:
        flat = _core.ps_recv(dense.number, dense.width)
        sizes = [int(p.size) for p, _ in trained]
        parts = _core.split(flat, sizes) if len(sizes) > 1 else [flat]
        for (param, _), part in zip(trained, parts):
            _core.assign_to(_core.reshape(part, list(param.shape)), param)


def leave_out(startup, names):
    """Removes what gives these variables their values: a worker has no memory for tables that grow on servers."""
    if not names:
        return
    core, kept = startup._core, []
    wanted = {name for name, _, persistable, *_ in core.vars(0) if persistable} - names
    persistable = wanted | names
    for at, (_, _, _, reads, writes, repeatable) in reversed(list(enumerate(core.links()))):
        given = [name for name in writes if name in persistable]
        if any(name in wanted for name in writes) or not repeatable and not given and not _only_for(core, writes, names):
            kept.append(at)
            wanted.update(reads)
    core.keep(sorted(kept))


def _only_for(core, made, names):
    """Whether what an operator makes is read by those alone that write `names`."""
    readers = [writes for _, _, _, reads, writes, _ in core.links() if set(reads) & set(made)]
    return bool(readers) and all(set(writes) <= names for writes in readers)
