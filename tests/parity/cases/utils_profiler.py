"""paddle.utils.profiler of 2.0 and 2.1: which operators a report counts, and how often. 2.6.2 keeps what it called
(enable_profiler and its kin) and has paddle.profiler in Profiler's stead."""
import contextlib
import os
import re
import sys
import tempfile

import paddle
from parity import case, since_removed

U = "paddle.utils.profiler."
OPS = ("matmul", "softmax", "tanh")


def counted(run):
    """{operator: calls} of the report that run() prints."""
    sys.stdout.flush()
    with tempfile.TemporaryFile("w+") as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            run()
            sys.stdout.flush()
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        text = file.read()
    calls = {op: re.search(rf"\b{op}\b\D*?\s(\d+)\s", text) for op in OPS}
    return {op: int(found[1]) for op, found in calls.items() if found}


def work(times, op=paddle.matmul):
    x = paddle.ones([4, 4])
    for _ in range(times):
        op(x, x) if op is paddle.matmul else op(x)


class Heir:
    """What 2.1's functions were: calls of the core."""
    @staticmethod
    def start_profiler(state, tracer_option="Default"):
        core = paddle.base.core
        core.enable_profiler({"CPU": core.ProfilerState.kCPU, "All": core.ProfilerState.kAll}[state])

    @staticmethod
    def stop_profiler(sorted_key=None, profile_path="/tmp/profile"):
        core = paddle.base.core
        core.disable_profiler(getattr(core.EventSortingKey, "k" + (sorted_key or "default").capitalize()), profile_path)

    @staticmethod
    def reset_profiler():
        paddle.base.core.reset_profiler()

    @staticmethod
    @contextlib.contextmanager
    def profiler(state, sorted_key=None, profile_path="/tmp/profile", tracer_option="Default"):
        Heir.start_profiler(state)
        yield
        Heir.stop_profiler(sorted_key, profile_path)


@case(*(U + n for n in ("start_profiler", "stop_profiler", "reset_profiler", "profiler")), grad=False)
def functions():
    profiler = since_removed("paddle.utils.profiler", lambda: Heir)
    with tempfile.TemporaryDirectory() as folder:
        def around(key, reset):
            profiler.start_profiler("CPU")
            work(2)
            if reset:
                profiler.reset_profiler()
            work(3, paddle.nn.functional.softmax)
            profiler.stop_profiler(key, os.path.join(folder, f"{key}{reset}"))

        def inside():
            with profiler.profiler("CPU", "total", os.path.join(folder, "inside")):
                work(4)
            work(5, paddle.tanh)  # not timed any more
        found = [counted(lambda key=key, reset=reset: around(key, reset))
                 for key in (None, "calls", "total", "max", "min", "ave") for reset in (False, True)]
        return found, counted(inside), sorted(name for name in os.listdir(folder))


class Recorder:
    """Profiler by what 2.6.2 has: batch_range is a scheduler's."""
    def __init__(self, batch_range, enabled):
        from paddle.profiler import Profiler, ProfilerTarget
        self.one = Profiler(targets=[ProfilerTarget.CPU], scheduler=tuple(batch_range),
                            on_trace_ready=lambda one: one.summary()) if enabled else None

    def __enter__(self):
        if self.one:
            self.one.start()
        return self

    def __exit__(self, *_):
        if self.one:
            self.one.stop()

    def record_step(self):
        if self.one:
            self.one.step()


def recorder(batch_range, enabled=True, path="none"):
    if paddle.__name__ != "proa":
        return Recorder(batch_range, enabled)
    from paddle.utils import profiler
    options = profiler.ProfilerOptions({"batch_range": batch_range, "profile_path": path, "sorted_key": "total"})
    return profiler.Profiler(enabled, options.with_state("CPU"))


@case(*(U + n for n in ("Profiler", "Profiler.record_step", "Profiler.start", "Profiler.stop", "ProfilerOptions",
                        "ProfilerOptions.with_state", "get_profiler")), grad=False)
def batches():
    """A batch calls matmul as often as its number says: which batches were counted shows in the sum."""
    with tempfile.TemporaryDirectory() as folder:
        def run(batch_range, enabled):
            with recorder(batch_range, enabled, os.path.join(folder, "trace")) as made:
                current = since_removed("paddle.utils.profiler", lambda: made)
                current = current if current is made else current.get_profiler()
                for n in range(6):
                    work(2 ** n)
                    current.record_step()
        return [counted(lambda r=r, on=on: run(r, on)) for r, on in (((1, 3), True), ((0, 2), True), ((2, 6), True), ((1, 3), False))]


@case(U + "Profiler.reset", grad=False)
def forgotten():
    """Profiler's own start, reset and stop are the functions'."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")

        def run():
            if paddle.__name__ != "proa":
                Heir.start_profiler("CPU")
                work(2)
                Heir.reset_profiler()
                work(3, paddle.tanh)
                return Heir.stop_profiler("total", path)
            made = recorder([0, 100], True, path)
            made.start()
            work(2)
            made.reset()
            work(3, paddle.tanh)
            made.stop()
        return counted(run), os.path.exists(path)
