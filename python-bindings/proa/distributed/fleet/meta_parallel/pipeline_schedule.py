"""Schedules of a pipeline: what each stage does, in order. A schedule is data; the runtime and tests both read it."""


def one_forward_one_backward(stage, stages, micro_batches):
    """1F1B: [("F", i) or ("B", i), …] of a stage. At most `stages − stage` forwards wait for their backward."""
    warm = min(stages - stage - 1, micro_batches)
    steps = [("F", i) for i in range(warm)]
    for i in range(micro_batches - warm):
        steps += [("F", warm + i), ("B", i)]
    return steps + [("B", i) for i in range(micro_batches - warm, micro_batches)]


def forward_then_backward(stage, stages, micro_batches):
    """All forwards, then all backwards."""
    return [("F", i) for i in range(micro_batches)] + [("B", i) for i in range(micro_batches)]


SCHEDULES = {"1F1B": one_forward_one_backward, "F-then-B": forward_then_backward}


def most_alive(steps):
    """The largest number of forwards of a schedule that wait for their backward."""
    alive = most = 0
    for kind, _ in steps:
        alive += 1 if kind == "F" else -1
        most = max(most, alive)
    return most
