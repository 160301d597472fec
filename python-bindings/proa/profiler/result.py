"""The result of one recorded period: statistics for each op, and a trace in Chrome's format."""
import json

from .. import _core


class ProfilerResult:
    """Records of one period. rows: (name, is_op, count, total, self, least, most, flops, bytes, kernel) for each op and
    kernel and each name, in seconds; events: Chrome's, where they were read from a file."""

    def __init__(self, rows=(), events=()):
        self.rows, self.events = list(rows), list(events)

    def save(self, path, format="json"):
        """Writes the last recorded period as Chrome's trace."""
        if format != "json":
            raise NotImplementedError(f"profiler: format is '{format}'; Proa writes 'json', which Chrome and Perfetto show")
        _core.profile_write_trace(path)

    def get_data(self):
        """The events."""
        return self.events

    def get_extra_info(self):
        """Nothing beside the events."""
        return {}


def load_profiler_result(filename):
    """Reads what Profiler.export wrote: a ProfilerResult with its events, and rows summed up from them."""
    with open(filename, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    rows = {}
    for e in events:
        if e.get("ph") != "X":
            continue
        seconds, more = e["dur"] * 1e-6, e.get("args", {})
        row = rows.setdefault((e["name"], e.get("cat") == "op", more.get("kernel")), [0, 0.0, seconds, seconds, 0.0, 0.0])
        row[0] += 1
        row[1] += seconds
        row[2], row[3] = min(row[2], seconds), max(row[3], seconds)
        row[4] += more.get("flops", 0)
        row[5] += more.get("bytes", 0)
    return ProfilerResult([(name, op, n, total, total, low, high, flops, size, kernel)
                           for (name, op, kernel), (n, total, low, high, flops, size) in rows.items()], events)
