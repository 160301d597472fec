"""paddle.profiler: counts, arithmetic and bytes of ops, eager and in programs; traces; nothing recorded while it is off."""
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import proa as paddle
from proa import _core, profiler
from proa.profiler import Profiler, ProfilerState, RecordEvent, SortedKeys, SummaryView


def record(function):
    """row by (name, is_op): (count, total, self, least, most, flops, bytes); each op ran one kernel."""
    with Profiler(on_trace_ready=lambda p: None) as p:
        result = function()
    rows = {row[:2]: row[2:9] for row in p.profiler_result.rows}
    return rows, result


def op(rows, name):
    return rows[name, True]


def test_counts_arithmetic_and_bytes():
    x, y = paddle.ones([4, 8]), paddle.ones([8, 16])
    rows, _ = record(lambda: [paddle.matmul(x, y) for _ in range(3)])
    count, total, own, least, most, flops, size = op(rows, "matmul")
    assert (count, flops, size) == (3, 3 * 2 * 4 * 8 * 16, 3 * 4 * (4 * 8 + 8 * 16 + 4 * 16))
    assert 0 < least <= most <= total and own == pytest.approx(total)


@pytest.mark.parametrize("name, call, flops", [
    ("matmul", lambda r: paddle.matmul(r(2, 8, 4), r(2, 8, 5), transpose_x=True), 2 * 2 * 4 * 8 * 5),
    ("bmm", lambda r: paddle.bmm(r(2, 3, 4), r(2, 4, 5)), 2 * 2 * 3 * 4 * 5),
    ("dot", lambda r: paddle.dot(r(7), r(7)), 14),
    ("conv2d", lambda r: paddle.nn.functional.conv2d(r(2, 4, 6, 6), r(8, 2, 3, 3), groups=2), 2 * 2 * 8 * 4 * 4 * 2 * 9),
    ("conv2d_transpose", lambda r: paddle.nn.functional.conv2d_transpose(r(1, 4, 5, 5), r(4, 3, 3, 3)),
     2 * 4 * 25 * 3 * 9),
    ("scaled_dot_product_attention", lambda r: paddle.nn.functional.scaled_dot_product_attention(
        r(1, 4, 2, 8), r(1, 6, 2, 8), r(1, 6, 2, 8)), 4 * 4 * 2 * 8 * 6),
    ("exp", lambda r: paddle.exp(r(5)), 0)])
def test_floating_point_operations(name, call, flops):
    rows, _ = record(lambda: call(lambda *shape: paddle.ones(list(shape))))
    assert op(rows, name)[5] == flops


def test_a_convolution_and_its_gradients():
    x, w = paddle.ones([1, 3, 8, 8]), paddle.ones([5, 3, 3, 3])
    x.stop_gradient = w.stop_gradient = False
    rows, _ = record(lambda: paddle.nn.functional.conv2d(x, w).sum().backward())
    forward = 2 * 5 * 36 * 27
    assert [op(rows, n)[5] for n in ("conv2d", "conv2d_grad_input", "conv2d_grad_filter")] == [forward] * 3


def test_recurrent_layers():
    net, x = paddle.nn.LSTM(6, 7), paddle.ones([2, 5, 6])
    rows, _ = record(lambda: net(x)[0].sum().backward())
    once = 2 * 2 * 5 * 4 * 7 * (6 + 7)
    assert (op(rows, "rnn")[5], op(rows, "rnn_grad")[5]) == (once, 2 * once)


def test_views_move_nothing():
    x = paddle.ones([4, 8])
    rows, _ = record(lambda: (x.reshape([8, 4]), paddle.expand(paddle.ones([1]), [1000]) + 1.0))
    assert op(rows, "reshape")[6] == 0


def test_programs_are_recorded():
    net = paddle.nn.Linear(4, 3)
    f = paddle.jit.to_static(net)
    f(paddle.ones([2, 4]))
    rows, _ = record(lambda: f(paddle.ones([2, 4])))
    assert sum(row[5] for row in rows.values()) == 2 * 2 * 4 * 3


def test_time_inside_a_call_is_not_its_own():
    @paddle.jit.to_static
    def f(x, n):
        i = paddle.zeros([1], "int64")
        while i < n:
            x = x * 0.5
            i += 1
        return x
    args = paddle.ones([64]), paddle.to_tensor([20])
    f(*args)
    rows, _ = record(lambda: f(*args))
    count, total, own = op(rows, "loop")[:3]
    assert count == 1 and own < total
    steps = [row for row in rows.values() if row[0] >= 20]
    before = max(row[4] for row in steps)  # the condition is first asked outside the loop
    assert steps and own + sum(row[2] for row in steps) <= total + before * 1.0001


def test_every_thread_is_recorded(tmp_path):
    def work():
        for _ in range(50):
            paddle.ones([3]) + 1.0

    def run():
        threads = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    rows, _ = record(run)
    assert op(rows, "scale" if ("scale", True) in rows else "add")[0] == 150
    path = str(tmp_path / "threads.json")
    _core.profile_write_trace(path)
    events = json.load(open(path))["traceEvents"]
    assert len({e["tid"] for e in events}) >= 3


def test_nothing_is_recorded_while_it_is_off():
    rows, _ = record(lambda: None)
    paddle.ones([3]) + 1.0
    assert [r for r in _core.profile_rows() if r[1]] == [k for k in rows if k[1]] == []


def test_a_row_for_each_kernel_of_an_op():
    """Views run none; a program's steps tell theirs as eager calls do."""
    x, small = paddle.ones([64, 64]), paddle.ones([2, 2], "float64")

    def run():
        return paddle.matmul(x, x), paddle.matmul(small, small), x.reshape([-1])
    with Profiler(on_trace_ready=lambda p: None) as p:
        run()
    kernels = {name: sorted(str(r[9]) for r in p.profiler_result.rows if r[0] == name) for name in ("matmul", "reshape")}
    assert len(kernels["matmul"]) == 2 and "matmul_cpu" in kernels["matmul"] and kernels["reshape"] == ["None"]
    compiled = paddle.jit.to_static(run)
    compiled()
    with Profiler(on_trace_ready=lambda p: None) as p:
        compiled()
    assert sorted(r[9] for r in p.profiler_result.rows if r[0] == "matmul") == kernels["matmul"]


def test_a_program_that_is_verbose_says_which_kernel_ran_and_why(tmp_path):
    script = "import proa as p\nx = p.ones([2, 2], 'float64')\nfor i in range(3): p.matmul(x, x)\np.exp(x)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                          env={**os.environ, "FLAGS_verbose": "1"})
    lines = [line for line in done.stderr.splitlines() if line.startswith("proa: matmul(")]
    assert len(lines) == 1, "once a shape"
    assert "x float64[2, 2], y float64[2, 2]" in lines[0] and lines[0].endswith("matmul_cpu: runs")
    assert "matmul_direct_cpu: not plain float32; " in lines[0]
    assert "proa: exp(x float64[2, 2]): exp_cpu: runs" in done.stderr


def test_trace(tmp_path):
    def work():
        with RecordEvent('a "stretch"\n'):
            paddle.ones([3]).exp()
    record(work)
    path = str(tmp_path / "trace.json")
    _core.profile_write_trace(path)
    trace = json.load(open(path))
    events = {e["name"]: e for e in trace["traceEvents"]}
    outer, inner = events['a "stretch"\n'], events["exp"]
    assert (outer["cat"], inner["cat"], inner["ph"], trace["otherData"]["lost"]) == ("user", "op", "X", 0)
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.01
    assert inner["args"] == {"flops": 0, "bytes": 24, "kernel": "exp_cpu"} and os.listdir(tmp_path) == ["trace.json"]
    again = profiler.load_profiler_result(path)
    assert ("exp", True, 1) in [row[:3] for row in again.rows]
    with pytest.raises(OSError):
        _core.profile_write_trace(str(tmp_path / "no" / "folder.json"))


def test_table_and_its_orders(capsys):
    x = paddle.ones([64, 64])

    def work():
        for _ in range(5):
            with RecordEvent("my part"):
                paddle.matmul(x, x)
        paddle.exp(x)
    with Profiler(on_trace_ready=lambda p: None) as p:
        work()
    for key in SortedKeys:
        p.summary(sorted_by=key, time_unit="us")
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].endswith("GB/s") and lines[1].split()[:6] == ["op", "kernel", "calls", "total", "us", "mean"]
        table = {line.split()[0]: line.split() for line in lines[2:]}
        assert table["matmul"][1].startswith("matmul_") and table["matmul"][2] == "5" and float(table["matmul"][8]) > 0
        column = {"Total": 3, "Avg": 4, "Min": 5, "Max": 6}[key.name[3:]]
        values = [float(table[n][column]) for n in table if n not in ("my", "stretch") and not n.startswith("Prof")]
        assert values == sorted(values, reverse=True)
    p.summary(views=SummaryView.UDFView)
    text = capsys.readouterr().out
    assert "my part" in text and "matmul" not in text
    p.summary(views=[SummaryView.OperatorView])
    text = capsys.readouterr().out
    assert "my part" not in text and "matmul" in text
    with pytest.raises(ValueError, match="unit is 'weeks'"):
        p.summary(time_unit="weeks")


def test_periods(tmp_path):
    seen = []

    def ready(p):
        seen.append((p.step_num, sum(r[2] for r in p.profiler_result.rows if r[0] == "exp")))
    scheduler = profiler.make_scheduler(closed=1, ready=1, record=2, repeat=2)
    with Profiler(scheduler=scheduler, on_trace_ready=ready) as p:
        for _ in range(10):
            paddle.exp(paddle.ones([2]))
            p.step()
    assert seen == [(4, 2), (8, 2)]
    with Profiler(scheduler=(1, 3), on_trace_ready=profiler.export_chrome_tracing(str(tmp_path), "me")) as p:
        for _ in range(5):
            paddle.exp(paddle.ones([2]))
            p.step()
    name, = os.listdir(tmp_path)
    assert name.startswith("me_time_") and name.endswith(".paddle_trace.json")
    names = [e["name"] for e in json.load(open(tmp_path / name))["traceEvents"]]
    assert names.count("exp") == 2 and "ProfileStep#1" in names and "ProfileStep#3" not in names


def test_a_second_profiler_waits_for_the_first():
    with Profiler(on_trace_ready=lambda p: None):
        with pytest.raises(RuntimeError, match="already"):
            Profiler().start()
        with pytest.raises(RuntimeError, match="stop it first"):
            _core.profile_text(0, "ms")
    assert not any(r[1] for r in _core.profile_rows())


def test_protobuf_is_a_typed_error(tmp_path):
    with pytest.raises(NotImplementedError, match="'json'"):
        with Profiler(on_trace_ready=profiler.export_protobuf(str(tmp_path))):
            pass


def test_nan_check_and_profiler_share_the_door():
    paddle.set_flags({"FLAGS_check_nan_inf": True})
    try:
        rows, _ = record(lambda: paddle.ones([2]).exp())
        assert op(rows, "exp")[0] == 1
        with pytest.raises(RuntimeError):
            paddle.to_tensor(np.float32([-1.0])).log()
        paddle.set_flags({"FLAGS_check_nan_inf": False})
        rows, _ = record(lambda: paddle.to_tensor(np.float32([-1.0])).log())
        assert op(rows, "log")[0] == 1
    finally:
        paddle.set_flags({"FLAGS_check_nan_inf": False})


def test_names_of_states():
    assert [s.name for s in ProfilerState] == ["CLOSED", "READY", "RECORD", "RECORD_AND_RETURN"]
