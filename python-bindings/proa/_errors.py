"""Exception hook for uncaught errors: the traceback ends at the user's line and leaves out Proa's own frames.
FLAGS_call_stack_level=2 shows all frames. Uses _core."""
import sys

from . import _core

_HERE = __file__.rpartition("/")[0] + "/"
_RUNNERS = ("<frozen runpy>", _HERE + "__main__.py")
_print = None


def of_kind(text):
    """The exception for an argument of a wrong kind where Paddle's C++ checks it: while a program is built it is Python's."""
    return TypeError(text) if _core.is_capturing() else ValueError("(InvalidArgument) " + text)


def _file(tb):
    return tb.tb_frame.f_code.co_filename


def _users_part(tb):
    """The traceback from the script's first frame to the last that is not Proa's; all of it if there is none."""
    first = tb
    while first is not None and _file(first) in _RUNNERS:
        first = first.tb_next
    last, at = None, first
    while at is not None:
        if not _file(at).startswith(_HERE):
            last = at
        at = at.tb_next
    if last is None:
        return tb
    last.tb_next = None
    return first


def _hook(kind, error, tb):
    if tb is not None and int(_core.get_flag("call_stack_level")) < 2:
        tb = _users_part(tb)
        error.__traceback__ = tb
    _print(kind, error, tb)


def install():
    """Once; what stood in sys.excepthook prints what is left."""
    global _print
    if _print is None:
        _print, sys.excepthook = sys.excepthook, _hook
