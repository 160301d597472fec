"""Profiler: starts and stops recording by a schedule of steps, times steps, and shows what was recorded."""
import time
import warnings

from .. import _core
from .kinds import ProfilerState, ProfilerTarget, SortedKeys, SummaryView, TracerEventType
from .record import RecordEvent
from .result import ProfilerResult
from .schedule import always, export_chrome_tracing, make_scheduler

_RECORDS = (ProfilerState.RECORD, ProfilerState.RECORD_AND_RETURN)


class Profiler:
    """A context manager that profiles what runs in it, step by step: call step() after each. scheduler: a function from step
    to ProfilerState, or a pair of the first step to record and the one after the last; without one all is recorded.
    on_trace_ready is called with the profiler after each period (without one, traces go to ./profiler_log/). timer_only: only
    times the steps. Shapes, memory and device options are taken and change nothing: counts of arithmetic and bytes are always
    recorded."""

    def __init__(self, *, targets=None, scheduler=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
                 timer_only=False, emit_nvtx=False, custom_device_types=[], with_flops=False):
        supported = [ProfilerTarget.CPU, ProfilerTarget.CUSTOM_DEVICE]
        self.targets = supported if not targets else {t for t in targets if t in supported}
        for target in targets or ():
            if target not in supported:
                warnings.warn(f"Profiling {target} is not supported in current context.")
        if callable(scheduler):
            self.scheduler = scheduler
        elif isinstance(scheduler, (tuple, list)):
            assert len(scheduler) == 2 and scheduler[1] > scheduler[0]
            first, end = max(scheduler[0], 0), scheduler[1]
            self.scheduler = make_scheduler(closed=max(first - 1, 0), ready=min(first, 1), record=end - first, repeat=1)
        else:
            self.scheduler = always
        self.on_trace_ready = export_chrome_tracing("./profiler_log/") if on_trace_ready is None else on_trace_ready
        self.step_num = 0
        self.previous_state, self.current_state = ProfilerState.CLOSED, self.scheduler(0)
        self.profiler_result = None
        self.timer_only, self.record_shapes, self.profile_memory = timer_only, record_shapes, profile_memory
        self.with_flops, self.emit_nvtx = with_flops, emit_nvtx
        self.record_event = None
        self._timer = _StepTimer()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.stop()

    def start(self):
        """Begins step 0."""
        self._timer.start()
        if self.timer_only:
            return
        if self.current_state in _RECORDS:
            _core.profile_start()
        self._begin_step()

    def stop(self):
        """Ends the profile; what is being recorded is a period."""
        self._timer.running = False
        if self.timer_only:
            return
        self._end_step()
        if self.current_state == ProfilerState.READY:
            warnings.warn("the profiler ends while it is getting ready: nothing was recorded")
        if self.current_state in _RECORDS:
            self._finish_period()

    def step(self, num_samples=None):
        """The next step begins; num_samples: how many samples the last one had, for step_info."""
        self._timer.step(num_samples)
        if self.timer_only:
            return
        self._end_step()
        self.previous_state = self.current_state
        self.step_num += 1
        self.current_state = self.scheduler(self.step_num)
        self._change(self.previous_state, self.current_state)
        self._begin_step()

    def step_info(self, unit=None):
        """A text: what a step has cost since the last call, in seconds, and steps or samples a second."""
        return self._timer.info(unit or "samples")

    def export(self, path="", format="json"):
        """Writes the last period's calls, in Chrome's trace format."""
        if self.profiler_result:
            self.profiler_result.save(path, format)

    def summary(self, sorted_by=SortedKeys.CPUTotal, op_detail=True, thread_sep=False, time_unit="ms", views=None):
        """Prints the last period's table: ops, then the user's own stretches. views chooses between them."""
        views = [views] if isinstance(views, SummaryView) else views
        if not self.profiler_result:
            return
        wanted = {view for view in views} if views else {SummaryView.OperatorView, SummaryView.UDFView}
        ops, head, stretches = _core.profile_text(sorted_by.value % 4, time_unit).partition("stretch  ")
        if SummaryView.OperatorView in wanted:
            print(ops, end="")
        if SummaryView.UDFView in wanted:
            print(head + stretches, end="")

    def _begin_step(self):
        self.record_event = RecordEvent(f"ProfileStep#{self.step_num}", TracerEventType.ProfileStep)
        self.record_event.begin()

    def _end_step(self):
        if self.record_event:
            self.record_event.end()
            self.record_event = None

    def _finish_period(self):
        _core.profile_stop()
        self.profiler_result = ProfilerResult(_core.profile_rows())
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _change(self, before, after):
        if before == ProfilerState.RECORD_AND_RETURN:
            self._finish_period()
        elif before == ProfilerState.RECORD and after not in _RECORDS:
            warnings.warn(f"the schedule goes from RECORD to {after.name}: what was recorded is lost; periods end with "
                          "RECORD_AND_RETURN")
            _core.profile_stop()
        elif before == ProfilerState.READY and after == ProfilerState.CLOSED:
            warnings.warn("the schedule goes from READY to CLOSED: nothing was recorded")
        if after in _RECORDS and before != ProfilerState.RECORD:
            _core.profile_start()


class _StepTimer:
    """Averages over the steps since it was last asked."""

    def __init__(self):
        self.running = False
        self._reset()

    def _reset(self):
        self.seconds, self.steps, self.samples = 0.0, 0, 0

    def start(self):
        self.running, self.last = True, time.perf_counter()
        self._reset()

    def step(self, samples):
        if not self.running:
            return
        now = time.perf_counter()
        self.seconds += now - self.last
        self.last = now
        self.steps += 1
        self.samples = None if samples is None or self.samples is None else self.samples + samples

    def info(self, unit):
        if not self.steps:
            return ""
        count, what = (self.steps, "steps") if self.samples is None else (self.samples, unit)
        text = f" batch_cost: {self.seconds / self.steps:.5f} s ips: {count / max(self.seconds, 1e-12):.3f} {what}/s"
        self._reset()
        return text
