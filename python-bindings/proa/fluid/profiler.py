"""fluid.profiler: what operators take."""
import contextlib

from ..profiler import Profiler

__all__ = ["cuda_profiler", "profiler", "reset_profiler", "start_profiler", "stop_profiler"]

_current = None


def start_profiler(state, tracer_option="Default"):
    """From now on operators are timed."""
    global _current
    if state not in ("CPU", "GPU", "All"):
        raise ValueError("The state must be 'CPU' or 'GPU' or 'All'.")
    _current = Profiler(timer_only=False)
    _current.start()


def stop_profiler(sorted_key=None, profile_path="/tmp/profile"):
    """Prints what operators took."""
    global _current
    if _current is not None:
        _current.stop()
        _current.summary()
        _current = None


def reset_profiler():
    """Forgets what was timed."""
    if _current is not None:
        _current.stop()
        _current.start()


@contextlib.contextmanager
def profiler(state, sorted_key=None, profile_path="/tmp/profile", tracer_option="Default"):
    """Times operators inside the with statement."""
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


@contextlib.contextmanager
def cuda_profiler(output_file, output_mode=None, config=None):
    """There is nothing to time on a GPU here."""
    yield
