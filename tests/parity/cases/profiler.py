"""paddle.profiler: enums, schedules, states step by step, what is exported, errors. Times differ, of course."""
import os
import tempfile
import warnings

import paddle
from paddle import profiler

from parity import case, raised


def names(kind):
    return [(member.name, member.value) for member in kind]


@case("paddle.profiler.ProfilerState", "paddle.profiler.ProfilerState.CLOSED", "paddle.profiler.ProfilerState.READY",
      "paddle.profiler.ProfilerState.RECORD", "paddle.profiler.ProfilerState.RECORD_AND_RETURN",
      "paddle.profiler.ProfilerTarget", "paddle.profiler.ProfilerTarget.CPU", "paddle.profiler.ProfilerTarget.GPU",
      "paddle.profiler.ProfilerTarget.XPU", "paddle.profiler.ProfilerTarget.CUSTOM_DEVICE",
      "paddle.profiler.SortedKeys", "paddle.profiler.SortedKeys.CPUTotal", "paddle.profiler.SortedKeys.CPUAvg",
      "paddle.profiler.SortedKeys.CPUMax", "paddle.profiler.SortedKeys.CPUMin", "paddle.profiler.SortedKeys.GPUTotal",
      "paddle.profiler.SortedKeys.GPUAvg", "paddle.profiler.SortedKeys.GPUMax", "paddle.profiler.SortedKeys.GPUMin",
      "paddle.profiler.SummaryView", "paddle.profiler.SummaryView.DeviceView", "paddle.profiler.SummaryView.OverView",
      "paddle.profiler.SummaryView.ModelView", "paddle.profiler.SummaryView.DistributedView",
      "paddle.profiler.SummaryView.KernelView", "paddle.profiler.SummaryView.OperatorView",
      "paddle.profiler.SummaryView.MemoryView", "paddle.profiler.SummaryView.MemoryManipulationView",
      "paddle.profiler.SummaryView.UDFView")
def enums():
    return [names(kind) for kind in (profiler.ProfilerState, profiler.ProfilerTarget, profiler.SortedKeys,
                                     profiler.SummaryView)]


@case("paddle.profiler.make_scheduler")
def schedules():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        made = [profiler.make_scheduler(closed=1, ready=1, record=4, repeat=1),
                profiler.make_scheduler(closed=1, ready=2, record=1),
                profiler.make_scheduler(closed=0, ready=0, record=1, repeat=2, skip_first=3),
                profiler.make_scheduler(closed=2, ready=1, record=2, repeat=3, skip_first=1)]
    states = [[schedule(step).name for step in range(25)] for schedule in made]
    return [states, len(seen), raised(lambda: made[0](-1), AssertionError),
            raised(lambda: profiler.make_scheduler(closed=1, ready=1, record=0), AssertionError),
            raised(lambda: profiler.make_scheduler(closed=-1, ready=1, record=1), AssertionError),
            raised(lambda: profiler.make_scheduler(1, 1, 1), TypeError)]


@case("paddle.profiler.Profiler", "paddle.profiler.Profiler.start", "paddle.profiler.Profiler.stop",
      "paddle.profiler.Profiler.step", "paddle.profiler.RecordEvent", "paddle.profiler.RecordEvent.begin",
      "paddle.profiler.RecordEvent.end")
def states_step_by_step():
    found = []
    for scheduler in (None, (2, 4), (0, 2), profiler.make_scheduler(closed=1, ready=1, record=2, repeat=2)):
        ready, states = [], []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prof = profiler.Profiler(targets=[profiler.ProfilerTarget.CPU], scheduler=scheduler,
                                     on_trace_ready=lambda p: ready.append(p.step_num))
        prof.start()
        for _ in range(9):
            with profiler.RecordEvent("part"):
                event = profiler.RecordEvent("inner")
                event.begin()
                paddle.ones([2]).exp()
                event.end()
            states.append((prof.step_num, prof.current_state.name, prof.previous_state.name))
            prof.step()
        prof.stop()
        found.append([states, ready, prof.profiler_result is not None])
        prof = None  # real Paddle has one at a time
    return [found, raised(lambda: profiler.Profiler(scheduler=(3, 3)), AssertionError)]


@case("paddle.profiler.export_chrome_tracing", "paddle.profiler.Profiler.export",
      "paddle.profiler.load_profiler_result", "paddle.profiler.export_protobuf")
def files():
    with tempfile.TemporaryDirectory() as folder:
        deep = os.path.join(folder, "a", "b")
        with profiler.Profiler(targets=[profiler.ProfilerTarget.CPU],
                               on_trace_ready=profiler.export_chrome_tracing(deep, "worker")) as prof:
            paddle.ones([2]).exp()
        name, = os.listdir(deep)
        profiler.export_protobuf(os.path.join(folder, "c"))
        path = os.path.join(folder, "again.json")
        prof.export(path=path, format="json")
        with open(path) as file:
            text = file.read()
        a_file = os.path.join(folder, "file")
        open(a_file, "w").close()
        return [name.startswith("worker_time_"), name.endswith(".paddle_trace.json"), '"traceEvents"' in text,
                os.path.isdir(os.path.join(folder, "c")),
                raised(lambda: profiler.export_chrome_tracing(os.path.join(a_file, "x")), RuntimeError)]


@case("paddle.profiler.Profiler.summary", "paddle.profiler.Profiler.step_info")
def tables_and_costs():
    prof = profiler.Profiler(timer_only=True)
    prof.start()
    infos = []
    for n in (None, 4):
        for _ in range(3):
            prof.step(n)
        infos.append(["".join(c for c in word if not c.isdigit()) for word in prof.step_info("images").split()])
    prof.stop()
    return [infos[0], prof.summary(), prof.profiler_result is None]
