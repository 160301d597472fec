"""Items and shapes: assignment to items, .shape with unknown dims, and what can be iterated."""
import operator

from .... import _core
from . import changes
from .numbers import as_number, number
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
    return isinstance(value, Tensor) and any(n != 1 for n in value.shape) or not isinstance(value, (Tensor, *NUMBERS))


def _fill(holder, mask, value):
    """holder[mask] = one value, with no need to count the mask."""
    while len(mask.shape) < len(holder.shape):
        mask = _core.unsqueeze(mask, [-1])
    value = _core.reshape(value, []) if isinstance(value, Tensor) else number(value, holder.dtype)
    holder[...] = _core.where(mask, value, holder)


def change_item(holder, index, name, value):
    """holder[index] OP= value"""
    set_item(getattr(operator, name)(holder[index], value), holder, index)


def shape(value):
    """value.shape; of a variable with unknown dims, these are numbers of the program."""
    dims = value.shape
    if symbolic(value) and -1 in dims:
        sizes = _core.shape(value)
        return [as_number(sizes[i]) if n < 0 else n for i, n in enumerate(dims)]
    return dims


def items(value):
    """What a comprehension iterates over."""
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
