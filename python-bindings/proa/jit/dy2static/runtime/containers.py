"""Items and shapes: assignment to items, .shape with unknown dims, and what can be iterated."""
import operator

from .... import _core
from . import changes
from .values import Tensor, symbolic


def set_item(value, holder, index):
    """holder[index] = value"""
    if symbolic(holder):
        changes.before_change(holder)
        if holder.dtype != getattr(value, "dtype", holder.dtype):
            value = _core.cast(value, holder.dtype)
    elif isinstance(holder, Tensor):
        changes.before_change(holder)
    holder[index] = value


def change_item(holder, index, name, value):
    """holder[index] OP= value"""
    set_item(getattr(operator, name)(holder[index], value), holder, index)


def shape(value):
    """value.shape; of a variable with unknown dims, these are tensors."""
    dims = value.shape
    if symbolic(value) and -1 in dims:
        sizes = _core.shape(value)
        return [sizes[i] if n < 0 else n for i, n in enumerate(dims)]
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
    return value
