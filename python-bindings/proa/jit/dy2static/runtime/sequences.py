"""Sequences whose length only the run knows: the rows of a tensor, range over tensors, enumerate and zip of those."""
from .... import _core
from ....tensor.array import TensorArray, array_length, array_read
from ..errors import refuse
from .numbers import as_number, number, tensor
from .values import Tensor, symbolic, user_place

MAX = 256  # rows or numbers that a loop over a known length may be unrolled to


class Sequence:
    """length(): how many, a tensor; at(i): the item."""

    what = "a tensor whose first dim is unknown"

    def refusal(self, wanted):
        return refuse(f"the length of {self.what} is known only in the run, so it cannot become {wanted}: write a "
                      "for loop over it that keeps its results in tensors", user_place())

    def __iter__(self):
        raise self.refusal("a Python sequence")

    def __len__(self):
        raise self.refusal("a number")


class Rows(Sequence):
    """A tensor's rows."""

    def __init__(self, source):
        self.source = source

    def length(self):
        return as_number(_core.shape(self.source)[0])

    def at(self, i):
        return _core.squeeze(_core.gather(self.source, _core.reshape(i, [1]), 0), [0])


class Items(Sequence):
    """A tensor array's items."""

    what = "a list that grew in a loop"

    def __init__(self, source):
        self.source = source

    def length(self):
        return as_number(array_length(self.source))

    def at(self, i):
        return array_read(self.source, i)


def _whole(value, name):
    if isinstance(value, Tensor):
        if value.dtype == _core.bool or "int" not in str(value.dtype):
            raise TypeError(f"range: {name} must be an integer, got a {value.dtype} tensor")
        return as_number(value)
    return value


class Range(Sequence):
    """range(…) with tensors."""

    what = "a range up to a tensor"

    def __init__(self, *args):
        if len(args) not in (1, 2, 3):
            raise TypeError(f"range expected 1 to 3 arguments, got {len(args)}")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        self.start, self.stop, self.step = _whole(start, "start"), _whole(stop, "stop"), _whole(step, "step")
        if not isinstance(self.step, Tensor) and self.step == 0:
            raise ValueError("range() arg 3 must not be zero")

    def length(self):
        step = self.step
        span = tensor(self.stop) - self.start
        if not isinstance(step, Tensor) and step == 1:
            count = span
        else:  # ceil(span / step), for either sign
            count = -((-span) // step)
        return as_number(_core.maximum(count, number(0)))

    def at(self, i):
        return (i if isinstance(self.step, int) and self.step == 1 else i * self.step) + self.start


class Zip(Sequence):
    """zip(…), of which at least one length is unknown."""

    what = "a zip of tensors whose first dims are unknown"

    def __init__(self, parts):
        self.parts = parts

    def length(self):
        lengths = [part.length() if isinstance(part, Sequence) else number(len(part)) for part in self.parts]
        least = lengths[0]
        for one in lengths[1:]:
            least = as_number(_core.minimum(least, one))
        return least

    def at(self, i):
        return tuple(part.at(i) for part in self.parts)


class Enumerate(Sequence):
    """enumerate(sequence, start)"""

    def __init__(self, part, start=0):
        self.part, self.start, self.what = part, start, part.what

    def length(self):
        return self.part.length()

    def at(self, i):
        return i + self.start, self.part.at(i)


class Reversed(Sequence):
    """reversed(sequence)"""

    def __init__(self, part):
        self.part, self.what = part, part.what

    def length(self):
        return self.part.length()

    def at(self, i):
        return self.part.at(self.part.length() - 1 - i)


def as_sequence(value):
    """A Sequence if only the run knows the length of a tensor, else its rows."""
    if not value.ndim:
        raise TypeError("iteration over a 0-D tensor")
    if value.declared_shape[0] < 0 or value.declared_shape[0] > MAX:
        return Rows(value)
    return [value[i] for i in range(value.shape[0])]


def _open(value):
    if isinstance(value, TensorArray):
        return Items(value)
    return as_sequence(value) if symbolic(value) else value


def range_(*args):
    """range(…)"""
    return Range(*args) if any(isinstance(one, Tensor) and one.is_symbolic for one in args) else range(*args)


def zip_(*parts, **options):
    """zip(…)"""
    parts = [_open(part) for part in parts]
    if not any(isinstance(part, Sequence) for part in parts):
        return zip(*parts, **options)
    for i, part in enumerate(parts):
        if isinstance(part, (list, tuple)) and part and all(isinstance(one, Tensor) for one in part):
            parts[i] = Rows(_core.stack(list(part)))
        elif isinstance(part, range):
            parts[i] = Range(number(part.start), part.stop, part.step)
        elif not isinstance(part, Sequence):
            raise refuse(f"zip: a {type(part).__name__} beside a sequence whose length is known only in the run: "
                         "give tensors or lists of tensors", user_place())
    return Zip(parts)


def enumerate_(part, start=0):
    """enumerate(…)"""
    part = _open(part)
    return Enumerate(part, start) if isinstance(part, Sequence) else enumerate(part, start)


def reversed_(part):
    """reversed(…)"""
    part = _open(part)
    return Reversed(part) if isinstance(part, Sequence) else reversed(part)
