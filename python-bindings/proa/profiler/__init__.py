"""paddle.profiler: what ops took, as tables and as traces, over the library's own profiler (_core.profile_start …)."""
from .kinds import ProfilerState, ProfilerTarget, SortedKeys, SummaryView, TracerEventType  # noqa: F401
from .profiler import Profiler  # noqa: F401
from .record import RecordEvent  # noqa: F401
from .result import ProfilerResult, load_profiler_result  # noqa: F401
from .schedule import export_chrome_tracing, export_protobuf, make_scheduler  # noqa: F401

__all__ = ["ProfilerState", "ProfilerTarget", "make_scheduler", "export_chrome_tracing", "export_protobuf", "Profiler",
           "RecordEvent", "load_profiler_result", "SortedKeys", "SummaryView"]
