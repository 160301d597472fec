"""paddle.profiler: time taken by ops, as tables and traces, over the library's profiler (_core.profile_start …)."""
from .kinds import ProfilerState, ProfilerTarget, SortedKeys, SummaryView, TracerEventType
from .profiler import Profiler
from .record import RecordEvent
from .result import ProfilerResult, load_profiler_result
from .schedule import export_chrome_tracing, export_protobuf, make_scheduler

__all__ = ["ProfilerState", "ProfilerTarget", "make_scheduler", "export_chrome_tracing", "export_protobuf", "Profiler",
           "RecordEvent", "load_profiler_result", "SortedKeys", "SummaryView"]
