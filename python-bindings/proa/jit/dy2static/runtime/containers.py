"""Items and shapes: assignment to items, .shape with unknown dims, and what can be iterated."""
import operator

from .... import _core
from ....framework.dims import numbers
from . import changes
from .calls import all_
from .logic import not_
from .numbers import number
from .values import NUMBERS, Tensor, symbolic


def set_item(value, holder, index):
    """holder[index] = value"""
    if symbolic(holder):
        changes.before_change(holder)
        if holder.dtype != getattr(value, "dtype", holder.dtype):
            value = _core.cast(value, holder.dtype)
    elif isinstance(holder, Tensor):
        changes.before_change(holder)
    if symbolic(holder) and isinstance(index, Tensor) and index.dtype == _core.bool and not _many(value):
        _fill(holder, index, value)
    else:
        holder[index] = value


def _many(value):
    return isinstance(value, Tensor) and any(n != 1 for n in value.declared_shape) or not isinstance(value, (Tensor, *NUMBERS))


def _fill(holder, mask, value):
    """holder[mask] = one value, with no need to count the mask."""
    while mask.ndim < holder.ndim:
        mask = _core.unsqueeze(mask, [-1])
    value = _core.reshape(value, []) if isinstance(value, Tensor) else number(value, holder.dtype)
    holder[...] = _core.where(mask, value, holder)


def change_item(holder, index, name, value):
    """holder[index] OP= value"""
    set_item(getattr(operator, name)(holder[index], value), holder, index)


class Shape(list):
    """A shape, some of whose lengths only the run knows: whether it equals another is the run's, too."""

    __hash__ = None

    def __eq__(self, other):
        if not isinstance(other, list) or len(self) != len(other):
            return False
        pairs = list(zip(self, other))
        if any(not symbolic(a) and not symbolic(b) and a != b for a, b in pairs):
            return False
        return all_(a == b for a, b in pairs)

    def __ne__(self, other):
        return not_(self == other)

    def __getitem__(self, i):
        return Shape(list.__getitem__(self, i)) if isinstance(i, slice) else list.__getitem__(self, i)


def shape(value):
    """value.shape; of a variable with unknown dims, these are numbers of the program."""
    if symbolic(value) and -1 in value.declared_shape:
        return Shape(numbers(value, value.declared_shape))
    return value.shape


def items(value):
    """The iterable of a comprehension."""
    from .sequences import Sequence, as_sequence
    if isinstance(value, Sequence):
        raise value.refusal("a list")
    if symbolic(value):
        sequence = as_sequence(value)
        if isinstance(sequence, Sequence):
            raise sequence.refusal("a list")
        return sequence
    changes.before_next(value)
    return value


def own_names(*pairs):
    """locals(): name, function that gives its value, and so on; those that are unbound are left out."""
    found = {}
    for name, value in zip(pairs[::2], pairs[1::2]):
        try:
            found[name] = value()
        except NameError:
            pass
    return found
