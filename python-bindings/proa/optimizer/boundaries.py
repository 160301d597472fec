"""Look-ups in ascending epochs, which formulas of schedules call (optimizer/rates.py)."""


def passed(boundaries, epoch):
    """The number of boundaries at or before the epoch."""
    return sum(epoch >= boundary for boundary in boundaries)


def pick(values, boundaries, epoch):
    """The value of the first boundary behind the epoch, the last of all values behind every boundary."""
    for boundary, value in zip(boundaries, values):
        if epoch < boundary:
            return value
    return values[-1]
