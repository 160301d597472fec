"""FLAGS_ settings: paddle.set_flags and paddle.get_flags."""
import sys

from .. import _core
from .paddle_flags import KEPT


# Paddle's flags about Python itself: each is a function that sets its argument, and returns what is set.
_OF_PYTHON = {"set_to_1d": _core.set_to_1d}


def _name(name, who):
    if not isinstance(name, str):
        raise TypeError(f"{who}: a flag's name must be a str, got {type(name).__name__}")
    return name


def _typed(text):
    """A flag's value: the int or float that the text is, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _kept(name):
    """The text of a flag of Paddle's that changes nothing here, or None."""
    return KEPT.get(name.removeprefix("FLAGS_"))


def set_flags(flags):
    """Sets the flags of a dict {'FLAGS_<name>': value}. Paddle's that have no meaning here are kept and change nothing.
    ValueError for any other that Proa does not have."""
    if not isinstance(flags, dict):
        raise TypeError(f"set_flags: flags must be a dict, got {type(flags).__name__}")
    for name, value in flags.items():
        if isinstance(value, bool):
            value = int(value)
        own = _OF_PYTHON.get(_name(name, "set_flags").removeprefix("FLAGS_"))
        if own is not None:
            own(str(value) not in ("0", "", "false", "False"))
            continue
        try:
            _core.set_flag(name, str(value))
        except (KeyError, LookupError, RuntimeError) as e:
            if _kept(name) is None:
                raise ValueError(f"set_flags: {e.args[0] if e.args else e}") from None
            KEPT[name.removeprefix("FLAGS_")] = str(value)
    if any(name.removeprefix("FLAGS_") in ("check_nan_inf", "check_nan_inf_level") for name in flags):
        _follow_checks()


def _follow_checks():
    """The level says whether FLAGS_check_nan_inf=1 ends a run (0), or what it prints (amp.debugging.DebugMode)."""
    if KEPT["check_nan_inf_level"] != "0" or "proa.amp.debugging" in sys.modules:
        from ..amp import debugging
        debugging.follow_flags()


def get_flags(flags):
    """The values of one flag, or of a list or tuple of them, as a dict."""
    if isinstance(flags, str):
        flags = [flags]
    if not isinstance(flags, (list, tuple)):
        raise TypeError(f"get_flags: flags must be a str, list or tuple, got {type(flags).__name__}")
    found = {}
    for name in flags:
        own = _OF_PYTHON.get(_name(name, "get_flags").removeprefix("FLAGS_"))
        if own is not None:
            found[name] = own()
            continue
        try:
            found[name] = _typed(_core.get_flag(name))
        except (KeyError, LookupError, RuntimeError) as e:
            if _kept(name) is None:
                raise ValueError(f"get_flags: {e.args[0] if e.args else e}") from None
            found[name] = _typed(_kept(name))
    return found
