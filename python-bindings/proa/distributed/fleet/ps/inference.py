"""Inference by programs whose tables are on servers."""
from . import programs as _programs


def pulling(job, program):
    """A copy of a program whose look-ups read the servers' tables, and count for nothing."""
    copy = program.clone(for_test=True)
    _programs.pull_rows(copy, [t for t in job.sparse if copy._variable(t.name) is not None], test=True)
    return copy


def save(worker, dirname, feeds, targets, executor, program, mode):
    """`__model__` with the look-ups that the script wrote, dense parameters a file each, and tables as save_persistables writes
    them. A table that grows on servers has rows only: DistributedInfer reads it there."""
    from ....fluid import io
    job = worker.job
    names = [t if isinstance(t, str) else t.name for t in (targets if isinstance(targets, (list, tuple)) else [targets])]
    origin = job.origin if program is None or program is job.main else program
    found = [origin._variable(name) for name in names]
    if None in found:
        raise ValueError(f"fleet.save_inference_model: the program has no variable {names[found.index(None)]!r}")
    io.save_inference_model(dirname, feeds, found, executor, origin, program_only=True)
    worker.save(dirname, mode)

