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


def of_dtype(text):
    """The exception for a tensor of a dtype for which there is no kernel: while a program is built it is Python's."""
    return TypeError(text) if _core.is_capturing() else RuntimeError("(NotFound) " + text)


def lacks(who, attribute, what, value, kind="a Tensor"):
    """What Python says of a value without the attribute, and what it must be; None if the value has it."""
    if hasattr(value, attribute):
        return None
    owner = f"type object '{value.__name__}'" if isinstance(value, type) else f"'{type(value).__name__}' object"
    return f"{owner} has no attribute '{attribute}': {who}: argument {what} must be {kind}"


def need_attribute(who, attribute, kind="a Tensor", **values):
    """AttributeError for a value without the attribute that a function reads before it looks at anything else."""
    for what, value in values.items():
        said = lacks(who, attribute, what, value, kind)
        if said:
            raise AttributeError(said) from None


def compared(value):
    """Raises what Paddle's Python raises where it compares a Tensor with a text and asks for the truth of the result."""
    if isinstance(value, _core.Tensor) and not value.is_symbolic:
        bool(value)


def need_rank(who, rank, least=False, **values):
    """ValueError for a value of another rank (least: of a lower one). Functions of images look at it first, in Python;
    here they do when they have failed, so that a call that succeeds does not pay for it."""
    need_attribute(who, "shape", **values)
    for what, value in values.items():
        n = len(value.shape)
        if n < rank if least else n != rank:
            raise ValueError(f"{who}: {what} must have {rank} dims, got shape {list(value.shape)}; reshape it") from None


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
