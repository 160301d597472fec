"""The thread's mode: dynamic (operations are executed eagerly) or static (they are added to the default main
program)."""
import contextlib

from .. import _core

__all__ = ["disable_static", "enable_static", "in_dynamic_mode", "in_static_mode"]

_on = False  # enable_static() was called
_names = None  # the counters of static mode, for when it goes on


def in_dynamic_mode():
    """True while operations run at once.

    >>> import proa as paddle
    >>> paddle.in_dynamic_mode()
    True
    """
    return not _core.is_capturing()


def in_static_mode():
    """True while operations build a program."""
    return not in_dynamic_mode()


def enable_static():
    """From now on operations are added to the default main program instead of being run."""
    global _on, _names
    from ..static.program import default_main_program
    if _names is not None:
        from . import unique_name
        unique_name.switch(*_names)
        _names = None
    _on = True
    _core.program_open(default_main_program()._core)


def disable_static(place=None):
    """From now on operations run at once: that is how Proa starts. After enable_static, names count from 0, as in Paddle:
    parameters of one name may be made once more. The next enable_static goes on with its own."""
    global _on, _names
    if _on:
        if not isinstance(place, (str, _core.Place, type(None))):
            raise ValueError(f"disable_static: place must be a place or its name, got {type(place).__name__}")
        from . import unique_name
        _names = unique_name.switch()
    _on = False
    _core.program_open(None)


def building():
    """True between enable_static and disable_static, while a program is open: layers make variables."""
    return _on and _core.is_capturing()


def static_enabled():
    """Whether enable_static was called last, also while something runs at once in between."""
    return _on


def by_name():
    """True while operators go to a Program, whose variables have names; while a function is captured (to_static, the body
    of a branch or a loop) they are run on tensors, as they are at once."""
    return _core.is_capturing() and not _core.captures_function()


@contextlib.contextmanager
def eager():
    """Operations inside run at once, whatever is open around."""
    was = _core.program_open(None)
    try:
        yield
    finally:
        _core.program_open(was)


@contextlib.contextmanager
def opened(program, role=0):
    """Operations inside go to this core program, for what role says (0 forward, 1 backward, 2 optimize)."""
    was = _core.program_open(program)
    before = program.set_role(role)
    try:
        yield
    finally:
        program.set_role(before)
        _core.program_open(was)
