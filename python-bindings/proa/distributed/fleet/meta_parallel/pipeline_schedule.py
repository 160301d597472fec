"""Schedules of a pipeline: what each stage does, in order. A schedule is data, which the runtime, the simulator and tests
read (proa_pipeline_schedule in C). A step is ("F" or "B", micro-batch, chunk): a stage has one chunk of layers, or with
virtual stages several."""
from .... import _core


def one_forward_one_backward(stage, stages, micro_batches, chunks=1):
    """1F1B. At most `stages − stage` forwards wait for their backward. With several chunks it is interleaved: chunk c of
    stage s is part c · stages + s of the model, and micro-batches go through chunks in groups of `stages`."""
    return _core.pipeline_schedule(0, stage, stages, micro_batches, chunks)


def forward_then_backward(stage, stages, micro_batches, chunks=1):
    """All forwards, then all backwards."""
    return _core.pipeline_schedule(1, stage, stages, micro_batches, chunks)


SCHEDULES = {"1F1B": one_forward_one_backward, "F-then-B": forward_then_backward}


def steps_of(who, name, stage, stages, micro_batches, chunks=1):
    """The schedule of that name for a stage."""
    if name not in SCHEDULES:
        raise ValueError(f"{who}: schedule_mode must be one of {sorted(SCHEDULES)}, got {name!r}")
    return SCHEDULES[name](stage, stages, micro_batches, chunks)


def most_alive(steps):
    """The largest number of forwards of a schedule that wait for their backward."""
    alive = most = 0
    for kind, *_ in steps:
        alive += 1 if kind == "F" else -1
        most = max(most, alive)
    return most
