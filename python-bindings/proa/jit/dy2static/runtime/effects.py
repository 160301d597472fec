"""Side effects of a program: prints and assertions on tensors, called in each run. They stay in the program because
their (meaningless) results count among its outputs; a program that is saved leaves them out."""
import threading

from .... import _core
from ....framework import mode
from . import changes

_state = threading.local()


class Effects(list):
    """with Effects() as e: … ; e then holds a tensor for each effect."""

    def __enter__(self):
        self.outer = getattr(_state, "current", None)
        _state.current = self
        return self

    def __exit__(self, *error):
        _state.current = self.outer


def possible():
    """Can an effect be kept here? Not inside a branch or loop, whose results are its variables alone."""
    return getattr(_state, "current", None) is not None and not changes.inside()


class Trying:
    """with Trying(): the body of a user's try, whose handlers see nothing of what a run raises."""

    def __enter__(self):
        _state.trying = getattr(_state, "trying", 0) + 1

    def __exit__(self, *error):
        _state.trying -= 1


def checkable():
    """Can a run raise here what the user's code would have raised?"""
    return possible() and not getattr(_state, "trying", 0)


def on_run(function, tensors):
    """function(values) is called whenever the program has computed these tensors."""
    def run(values):
        with mode.eager():
            function(values)
            return [_core.full([], False, _core.bool)]
    number = _core.host_function(run, -1, b"\1" * (len(tensors) + 1))
    _state.current.extend(_core.host_call(list(tensors), number, [(_core.bool, [])]))
