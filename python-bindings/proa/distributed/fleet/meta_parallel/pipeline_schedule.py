"""Schedules of a pipeline: what each stage does, in order. A schedule is data; the runtime and tests both read it. A step is
("F" or "B", micro-batch, chunk): a stage has one chunk of layers, or with virtual stages several."""


def _ordered(warm, forwards, backwards):
    """`warm` forwards, then one forward and one backward in turn, then the backwards that are left."""
    steps = [("F", *at) for at in forwards[:warm]]
    for forward, backward in zip(forwards[warm:], backwards):
        steps += [("F", *forward), ("B", *backward)]
    return steps + [("B", *at) for at in backwards[len(forwards) - warm:]]


def one_forward_one_backward(stage, stages, micro_batches, chunks=1):
    """1F1B. At most `stages − stage` forwards wait for their backward. With several chunks it is interleaved: chunk c of
    stage s is part c · stages + s of the model, and micro-batches go through chunks in groups of `stages`."""
    if chunks == 1:
        every = [(i, 0) for i in range(micro_batches)]
        return _ordered(min(stages - stage - 1, micro_batches), every, every)
    if micro_batches % stages:
        raise ValueError(f"interleaved stages: accumulate_steps is {micro_batches}; it must be divisible by the {stages} stages")
    forwards = [(first + i, chunk) for first in range(0, micro_batches, stages) for chunk in range(chunks) for i in range(stages)]
    backwards = [(i, chunks - 1 - chunk) for i, chunk in forwards]
    return _ordered(min(2 * (stages - stage - 1) + (chunks - 1) * stages, len(forwards)), forwards, backwards)


def forward_then_backward(stage, stages, micro_batches, chunks=1):
    """All forwards, then all backwards."""
    every = [(i, chunk) for chunk in range(chunks) for i in range(micro_batches)]
    return [("F", *at) for at in every] + [("B", *at) for at in reversed(every)]


SCHEDULES = {"1F1B": one_forward_one_backward, "F-then-B": forward_then_backward}


def most_alive(steps):
    """The largest number of forwards of a schedule that wait for their backward."""
    alive = most = 0
    for kind, *_ in steps:
        alive += 1 if kind == "F" else -1
        most = max(most, alive)
    return most
