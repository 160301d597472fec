"""RecordEvent: a named time range of the user's code in the profiler's tables and traces."""
import contextlib
import warnings

from .. import _core
from .kinds import TracerEventType

_ALLOWED = (TracerEventType.Dataloader, TracerEventType.ProfileStep, TracerEventType.Forward, TracerEventType.Backward,
            TracerEventType.Optimization, TracerEventType.PythonOp, TracerEventType.PythonUserDefined)


class RecordEvent(contextlib.ContextDecorator):
    """Names what runs between begin() and end(), or in a with block, or in a decorated function. Does nothing while no
    profiler records."""

    def __init__(self, name, event_type=TracerEventType.PythonUserDefined):
        self.name, self.event_type = name, event_type
        self._began = 0

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        self.end()

    def begin(self):
        """The stretch begins."""
        self._began = _core.profile_begin()
        if self._began and self.event_type not in _ALLOWED:
            warnings.warn("only events of these types are recorded: " + ", ".join(map(str, _ALLOWED)))
            self._began = 0

    def end(self):
        """The stretch ends."""
        if self._began:
            _core.profile_end(self.name, self._began)
