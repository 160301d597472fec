"""Tensors that a block overwrites in place: noted, so that the block's result carries their new value and its end
takes it back."""
import threading

from .... import _core

_state = threading.local()


class Changes:
    """with Changes() as c: … ; c.tensors then holds what was overwritten inside, and restore() undoes it."""

    def __init__(self):
        self.before = {}  # id -> (the tensor object, its value before)

    def __enter__(self):
        self.outer = getattr(_state, "current", None)
        _state.current = self
        return self

    def __exit__(self, *error):
        _state.current = self.outer

    def note(self, tensor):
        if id(tensor) not in self.before:
            self.before[id(tensor)] = tensor, _core.Tensor(tensor)

    @property
    def tensors(self):
        return [tensor for tensor, _ in self.before.values()]

    def restore(self):
        for tensor, value in self.before.values():
            tensor._become(value)


def before_change(tensor):
    """To be called before tensor is overwritten: inside a block it goes on as a copy, which is then overwritten."""
    current = getattr(_state, "current", None)
    if current is not None:
        current.note(tensor)
        tensor._become(_core.assign(tensor))


def replace(tensor, value):
    """tensor shows value from now on, for whoever holds it."""
    current = getattr(_state, "current", None)
    if current is not None:
        current.note(tensor)
        tensor._become(value)
    elif tensor.is_symbolic:
        tensor._become(value)
    else:  # a parameter or buffer: written in each run
        tensor[...] = value
