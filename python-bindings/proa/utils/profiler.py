"""paddle.utils.profiler: the profiling interface of Paddle 2.0 and 2.1, over paddle.profiler. A report is a table on
standard output and a trace in Chrome's format at profile_path."""
import contextlib

from ..profiler import Profiler as _Recorder, SortedKeys

__all__ = ["Profiler", "get_profiler", "ProfilerOptions", "cuda_profiler", "start_profiler", "profiler",
           "stop_profiler", "reset_profiler"]

_STATES = ("CPU", "GPU", "All")
_TRACERS = ("Default", "OpDetail", "AllOpDetail")
# Paddle's keys of a table's order: its rows are ops, whose number of calls is a column, not an order.
_ORDERS = {None: SortedKeys.CPUTotal, "default": SortedKeys.CPUTotal, "calls": SortedKeys.CPUTotal,
           "total": SortedKeys.CPUTotal, "max": SortedKeys.CPUMax, "min": SortedKeys.CPUMin, "ave": SortedKeys.CPUAvg}

_recorder = None  # of start_profiler
_options_profiler = None  # of get_profiler


def start_profiler(state, tracer_option="Default"):
    """Times operators from now on. state: 'CPU', 'GPU' or 'All'; tracer_option: 'Default', 'OpDetail' or
    'AllOpDetail', all of which record every operator. ValueError for others."""
    global _recorder
    if state not in _STATES:
        raise ValueError(f"(InvalidArgument) start_profiler: The state must be 'CPU' or 'GPU' or 'All', got {state!r}")
    if tracer_option not in _TRACERS:
        raise ValueError("(InvalidArgument) start_profiler: tracer option must be 'Default', 'OpDetail', 'AllOpDetail', "
                         f"got {tracer_option!r}")
    if _recorder is None:
        _recorder = _Recorder(on_trace_ready=lambda recorder: None)
        _recorder.start()


def stop_profiler(sorted_key=None, profile_path="/tmp/profile"):
    """Ends the profile: prints its table in the order of sorted_key ('calls', 'total', 'max', 'min', 'ave') and writes
    its trace to profile_path. Does nothing where none was started."""
    global _recorder
    if sorted_key not in _ORDERS:
        raise ValueError("(InvalidArgument) stop_profiler: The sorted_key must be None or in 'calls', 'total', 'max', 'min' "
                         f"and 'ave', got {sorted_key!r}")
    recorder, _recorder = _recorder, None
    if recorder is None:
        return
    recorder.stop()
    recorder.summary(sorted_by=_ORDERS[sorted_key])
    recorder.export(profile_path)


def reset_profiler():
    """Forgets what was timed, and goes on."""
    if _recorder is not None:
        _recorder.stop()
        _recorder.start()


@contextlib.contextmanager
def profiler(state, sorted_key=None, profile_path="/tmp/profile", tracer_option="Default"):
    """Times operators inside the with statement, then reports as stop_profiler does."""
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


@contextlib.contextmanager
def cuda_profiler(output_file, output_mode=None, config=None):
    """Paddle's window for NVIDIA's own profiler. RuntimeError where no GPU can be used."""
    from ..device import cuda
    if cuda.device_count() == 0:
        raise RuntimeError("(PreconditionNotMet) cuda_profiler: no GPU can be used here; use profiler('CPU')")
    yield


class ProfilerOptions:
    """Options of a Profiler by name: state, sorted_key, tracer_level, batch_range, profile_path. As in Paddle, others are
    ignored when they are given, and a ValueError when they are read."""

    def __init__(self, options=None):
        self.options = {"state": "All", "sorted_key": "default", "tracer_level": "Default", "batch_range": [0, 1 << 62],
                        "output_thread_detail": False, "profile_path": "none", "timeline_path": "none",
                        "op_summary_path": "none"}
        self.options.update((name, value) for name, value in (options or {}).items()
                            if name in self.options and value is not None)

    def with_state(self, state):
        """Sets the state and returns the options."""
        self.options["state"] = state
        return self

    def __getitem__(self, name):
        if name not in self.options:
            raise ValueError(f"(InvalidArgument) ProfilerOptions does not have an option named {name}; it has "
                             f"{', '.join(self.options)}")
        value = self.options[name]
        return None if value == "none" else value


class Profiler:
    """Times batches from batch_range[0] up to batch_range[1], counted by record_step; a context manager."""

    def __init__(self, enabled=True, options=None):
        self.enabled = enabled
        self.profiler_options = options or ProfilerOptions()
        self.batch_id, self._running, self._outer = 0, False, None

    def __enter__(self):
        global _options_profiler
        self._outer, _options_profiler = _options_profiler, self
        if self.enabled and self.profiler_options["batch_range"][0] == 0:
            self.start()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        global _options_profiler
        _options_profiler = self._outer
        if self.enabled:
            self.stop()

    def start(self):
        """Begins to time operators, if the profiler is enabled and does not yet."""
        if self.enabled and not self._running:
            start_profiler(self.profiler_options["state"], self.profiler_options["tracer_level"])
            self._running = True

    def stop(self):
        """Reports, if operators are being timed."""
        if self._running:
            self._running = False
            stop_profiler(self.profiler_options["sorted_key"], self.profiler_options["profile_path"] or "/tmp/profile")

    def reset(self):
        """Forgets what was timed, and goes on."""
        if self._running:
            reset_profiler()

    def record_step(self, change_profiler_status=True):
        """A batch has ended: starts at the first batch of batch_range, and stops after the last."""
        if not self.enabled:
            return
        self.batch_id += 1
        first, end = self.profiler_options["batch_range"]
        if change_profiler_status and self.batch_id == first:
            self.reset() if self._running else self.start()
        if change_profiler_status and self.batch_id == end:
            self.stop()


def get_profiler():
    """The Profiler whose with statement runs, or one of default options."""
    global _options_profiler
    if _options_profiler is None:
        _options_profiler = Profiler()
    return _options_profiler
