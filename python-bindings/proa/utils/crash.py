"""paddle.disable_signal_handler: leaves fatal signals alone. Without it, and unless PROA_CRASH_REPORT=0 was set when
Proa was imported, a crash in native code says on stderr which op ran and where Python was."""
from .. import _core


def disable_signal_handler():
    """Puts back what SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT did before Proa was imported."""
    _core.crash_report(False)
