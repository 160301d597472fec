"""Classes that describe an optimizer: its update op, accumulators and settings. Instances are in table.py, which is
generated from the op table."""
from .. import _core


class Slot:
    """An accumulator: Paddle's name, how it starts ("zero", "initial_value", "beta1", "beta2"), whether it is float32
    beside halves, whether it is one number."""

    __slots__ = ("state", "start", "wide", "single")

    def __init__(self, state, start, wide, single):
        self.state, self.start, self.wide, self.single = state, start, wide, single


class Kind:
    """A step's op (None: none), its slots in Paddle's order and their places in the call, and its numbers: (option, type)."""

    __slots__ = ("op", "slots", "order", "numbers")

    def __init__(self, op, slots, order, numbers):
        self.op, self.slots, self.order, self.numbers = op and getattr(_core, op), slots, order, numbers
