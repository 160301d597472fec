"""Tensors from outside that a block overwrites in place: noted, so that the block's result carries their new value
and its end takes it back."""
import contextlib
import threading
import weakref

from .... import _core
from ..errors import refuse
from .values import user_place

_state = threading.local()
_without_gradient = weakref.WeakValueDictionary()  # by id


class Changes:
    """with Changes(known) as c: … ; c.tensors then holds what was overwritten inside, and restore() undoes it.

    known: id -> tensor object, those that were there before the block; others are the block's own affair. iterators:
    likewise.
    """

    def __init__(self, known, iterators):
        self.known, self.iterators = known, iterators
        self.before = {}  # id -> (the tensor object, its value before)

    def __enter__(self):
        self.outer = getattr(_state, "current", None)
        _state.current = self
        return self

    def __exit__(self, *error):
        _state.current = self.outer

    def knows(self, tensor):
        return id(tensor) in self.known or self.outer is not None and self.outer.knows(tensor)

    def note(self, tensor):
        """True if the tensor is from outside, and its value is kept."""
        if not self.knows(tensor):
            return False
        if id(tensor) not in self.before:
            self.before[id(tensor)] = tensor, _core.Tensor(tensor)
        return True

    @property
    def tensors(self):
        return [tensor for tensor, _ in self.before.values()]

    def values(self):
        """id -> what the overwritten tensors show now, as objects of their own."""
        return {key: _core.Tensor(tensor) for key, (tensor, _) in self.before.items()}

    def restore(self):
        for tensor, value in self.before.values():
            tensor._become(value)


def inside():
    """True inside a branch or loop."""
    return getattr(_state, "current", None) is not None


def before_change(tensor):
    """To be called before tensor is overwritten: inside a block it goes on as a copy, which is then overwritten."""
    current = getattr(_state, "current", None)
    if current is not None and current.note(tensor):
        tensor._become(_core.assign(tensor))


def before_next(iterator):
    """To be called before an item is taken: a block of a program cannot take one from an iterator made outside."""
    current = getattr(_state, "current", None)
    while current is not None:
        if id(iterator) in current.iterators:
            raise refuse(f"an item is taken from a {type(iterator).__name__} in a branch or loop that only the run "
                         "knows, but the iterator was made outside: take its items before", user_place())
        current = current.outer


def statistics_move(*statistics):
    """before_change of running statistics, through which no gradient flows."""
    for one in statistics:
        before_change(one)
        _without_gradient[id(one)] = one


def is_statistic(tensor):
    """Whether statistics_move has seen it."""
    return _without_gradient.get(id(tensor)) is tensor


@contextlib.contextmanager
def copied(tensors):
    """Inside, the tensors show copies made now: what an operator saves of them stays as it is when they are
    written."""
    before = []
    try:
        for tensor in tensors:
            before_change(tensor)
            before.append((tensor, _core.Tensor(tensor)))
            tensor._become(_core.assign(tensor))
        yield
    finally:
        for tensor, value in before:
            tensor._become(value)


def replace(tensor, value):
    """tensor shows value from now on, for whoever holds it."""
    current = getattr(_state, "current", None)
    if is_statistic(tensor):
        value = value.detach()
    if current is not None and current.note(tensor) or tensor.is_symbolic:
        tensor._become(value)
    else:  # a parameter or buffer: written in each run
        tensor[...] = value
