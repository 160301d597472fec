"""make_scheduler and the handlers of finished periods: in which steps a Profiler records, and where results go."""
import datetime
import os
import socket
import warnings

from .kinds import ProfilerState


def make_scheduler(*, closed, ready, record, repeat=0, skip_first=0):
    """A function from a step's number to its ProfilerState: after skip_first steps, periods of `closed` steps without
    profiling, `ready` steps to get ready and `record` steps recorded, the last of which ends the period; `repeat` periods,
    or without end for 0."""
    assert closed >= 0 and ready >= 0 and record > 0 and repeat >= 0 and skip_first >= 0, \
        "Invalid profiler scheduler arguments"
    if ready == 0:
        warnings.warn("the first steps recorded will hold what starting the profiler costs: make_scheduler(ready=0)")
    period = closed + ready + record

    def state(step):
        assert step >= 0
        turn, at = divmod(step - skip_first, period)
        if step < skip_first or (repeat > 0 and turn >= repeat) or at < closed:
            return ProfilerState.CLOSED
        if at < closed + ready:
            return ProfilerState.READY
        return ProfilerState.RECORD if at < period - 1 else ProfilerState.RECORD_AND_RETURN
    return state


def always(step):
    """The scheduler of a Profiler that is given none."""
    return ProfilerState.RECORD


def _exporter(folder, worker_name, ending, kind):
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        raise RuntimeError(f"Can not create directory '{folder}' for saving profiling results.") from None

    def handle(profiler):
        name = worker_name or f"host_{socket.gethostname()}pid_{os.getpid()}"
        now = datetime.datetime.now().strftime("%Y_%m_%d_%H_%M_%S_%f")
        profiler.export(os.path.join(folder, f"{name}_time_{now}.paddle_trace.{ending}"), kind)
    return handle


def export_chrome_tracing(dir_name, worker_name=None):
    """For Profiler(on_trace_ready=...): writes each period to dir_name, in Chrome's trace format."""
    return _exporter(dir_name, worker_name, "json", "json")


def export_protobuf(dir_name, worker_name=None):
    """As export_chrome_tracing, for real Paddle's own format, which Proa does not write: exporting is a typed error."""
    return _exporter(dir_name, worker_name, "pb", "pb")
