"""paddle.amp.debugging: statistics, logs of results, tables of calls, and the workbook that compares two logs."""
import contextlib
import io
import os
import sys
import tempfile
import types

import numpy as np
import paddle
from paddle.amp import debugging

from parity import case, raised

D = "paddle.amp.debugging."
ODD = np.array([1, 0, np.nan, np.inf, -2, 0, 7e4], "float32")
SHOWN = {"elementwise_pow", "scale", "elementwise_pow_grad"}


@case(D + "DebugMode", D + "check_numerics", *(f"{D}DebugMode.{m}" for m in (
    "CHECK_NAN_INF_AND_ABORT", "CHECK_NAN_INF", "CHECK_ALL_FOR_OVERFLOW", "CHECK_ALL")), grad=False)
def statistics_of_a_tensor():
    mode = debugging.DebugMode
    tensors = [paddle.to_tensor(ODD).astype(d) for d in ("float16", "bfloat16", "float32", "float64")]
    fine = paddle.to_tensor(ODD[[0, 1, 4, 6]])
    poisoned = [paddle.to_tensor(v, dtype="float32") for v in ([np.nan, 1], [1, np.nan, 3])]
    return ([(m.name, m.value) for m in mode], [debugging.check_numerics(t, "op", "t", mode.CHECK_NAN_INF) for t in tensors + poisoned],
            [debugging.check_numerics(fine, "op", "t", m) for m in mode], debugging.check_numerics(fine, "op", "t"),
            [raised(lambda t=t: debugging.check_numerics(t, "op", "t"), RuntimeError, ValueError, AttributeError)
             for t in [*tensors, paddle.to_tensor([1, 2]), [1.0], None]],
            [raised(lambda a=a: debugging.check_numerics(fine, *a)) for a in ((1, "t"), ("op", None), ("op", "t", 0))])


@case(D + "check_numerics", grad=False)
def statistics_in_a_program():
    paddle.enable_static()
    try:
        program = paddle.static.Program()
        with paddle.static.program_guard(program):
            x = paddle.static.data("x", [3])
            stats, values = debugging.check_numerics(x, "op", "x", debugging.DebugMode.CHECK_ALL)
        executor = paddle.static.Executor()
        found = executor.run(program, feed={"x": np.float32([1, 2, 0])}, fetch_list=[stats, values])
        bad = raised(lambda: executor.run(program, feed={"x": np.float32([1, np.nan, 0])}, fetch_list=[stats]), RuntimeError)
        return found, bad, stats.shape, values.shape
    finally:
        paddle.disable_static()


class Divide(paddle.nn.Layer):
    @debugging.check_layer_numerics
    def forward(self, x):
        return 1 / x


@case(D + "check_layer_numerics", grad=False)
def checked_layer():
    layer, x = Divide(), paddle.ones([2])
    failed = [raised(f) for f in (lambda: layer(paddle.zeros([2])), layer, lambda: layer(x=x), lambda: layer(3))]
    paddle.set_flags({"FLAGS_check_nan_inf": False})
    return layer(x), x.stop_gradient, failed


def _config(**settings):
    with contextlib.redirect_stdout(io.StringIO()):
        return debugging.TensorCheckerConfig(True, **settings)


def _run():
    x, y = paddle.to_tensor([1, 0, 3.0], stop_gradient=False), paddle.to_tensor([0.2, 0, 0.5])
    r = paddle.pow(x, y)
    (r * 7e4).sum()
    r.sum().backward()


def _log(mode):
    with tempfile.TemporaryDirectory() as folder:
        debugging.enable_tensor_checker(_config(debug_mode=mode, output_dir=folder))
        _run()
        debugging.disable_tensor_checker()
        with open(os.path.join(folder, "worker_cpu")) as log:
            lines = [line.replace("-nan", "nan").split("mean=")[0] for line in log]
    return [line for line in lines if line.partition("op=")[2].partition(",")[0] in SHOWN]


@case(D + "TensorCheckerConfig", D + "TensorCheckerConfig.start_check_nan_inf", D + "TensorCheckerConfig.stop_check_nan_inf",
      D + "enable_tensor_checker", D + "disable_tensor_checker", grad=False)
def logs_of_results():
    mode = debugging.DebugMode
    logs = [_log(m) for m in (mode.CHECK_NAN_INF, mode.CHECK_ALL_FOR_OVERFLOW, mode.CHECK_ALL)]
    flags = paddle.get_flags(["FLAGS_check_nan_inf", "FLAGS_check_nan_inf_level"])
    return logs, [int(v) for v in flags.values()]


@case(D + "TensorCheckerConfig.update_and_check_step_id", D + "TensorCheckerConfig.current_step_id", grad=False)
def steps_that_are_checked():
    kind, paddle_seed = debugging.TensorCheckerConfig, paddle.seed
    paddle_seed(77)
    config, seen = _config(debug_step=[0, 2]), []
    for _ in range(4):
        debugging.enable_tensor_checker(config)
        seen.append((bool(paddle.get_flags("FLAGS_check_nan_inf")["FLAGS_check_nan_inf"]), kind.current_step_id))
    debugging.disable_tensor_checker()
    kind.current_step_id = 0
    off = kind(False)
    return (seen, config.seed, config.initial_seed, off.seed, off.initial_seed, off.update_and_check_step_id(),
            [raised(lambda k=k: kind(False, **k)) for k in ({"debug_step": 3}, {"debug_step": [3, 2]}, {"debug_mode": 5},
                                                           {"checked_op_list": 5}, {"skipped_op_list": "scale"})],
            raised(lambda: debugging.enable_tensor_checker(_config(stack_height_limit="a"))), raised(
                lambda: debugging.enable_tensor_checker(None)))


def _table(work):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), debugging.collect_operator_stats():
        work()
    return out.getvalue().splitlines()


@case(D + "collect_operator_stats", D + "enable_operator_stats_collection", D + "disable_operator_stats_collection", grad=False)
def calls_by_dtype():
    x, half, whole = paddle.ones([2, 2]), paddle.ones([2, 2], "float16"), paddle.ones([2, 2], "int32")

    def work():
        table = paddle.nn.functional.embedding(whole.astype("int64"), x)
        paddle.gather(table, whole[0])
        for t in (x, x, half, half.astype("bfloat16"), whole):
            paddle.transpose(t, [1, 0])
        paddle.exp(x)
        paddle.matmul(x, x)
    lines = _table(work)
    shown = ("transpose2", "exp", "matmul_v2", "lookup_table_v2", "gather")
    kept = [line for line in lines if line.split("|")[0].strip() in shown]
    listed = {op: calls for op, calls in paddle.base.core.get_low_precision_op_list().items() if op in shown}
    debugging.disable_operator_stats_collection()  # once more: does nothing
    return lines[:2], kept, listed, _table(lambda: None), paddle.get_flags("FLAGS_low_precision_op_list")


LOGS = ["""[PRECISION] in [device=gpu:0, op=matmul_v2, tensor=a.tmp_0, dtype=fp32], numel=6, num_zero=1, max=7.000000e+04, min=1.000000e-06, mean=2.0e+00
[PRECISION] in [device=gpu:0, op=scale, tensor=b, dtype=fp32], numel=1, num_zero=0, max=1.000000e+00, min=1.000000e+00, mean=1.000000e+00
[PRECISION] in [device=gpu:0, op=scale, tensor=b, dtype=fp32], numel=1, num_zero=0, max=2.000000e+00, min=0.000000e+00, mean=1.000000e+00
unrelated
[PRECISION] in [device=gpu:0, op=scale_grad, tensor=b@GRAD, dtype=fp32], numel=1, num_zero=0, max=2.000000e+00, min=1.000000e+00, mean=1.000000e+00
""", """[PRECISION] [ERROR] in [device=gpu:0, op=matmul_v2, tensor=a.cast_fp16.tmp_0, dtype=fp16], numel=6, num_nan=0, num_inf=1, num_zero=1, max=inf, \
min=1.0e-06, mean=inf
[PRECISION] in [device=gpu:0, op=scale, tensor=b, dtype=fp16], numel=1, num_zero=0, max=1.000000e+00, min=1.000000e+00, mean=1.000000e+00
[PRECISION] in [device=gpu:0, op=scale, tensor=b, dtype=fp16], numel=1, num_zero=0, max=2.000000e+00, min=3.000000e+00, mean=1.200000e+00
[PRECISION] in [device=gpu:0, op=scale_grad, tensor=b@GRAD, dtype=fp16], numel=1, num_zero=0, max=1.600000e+01, min=9.000000e+00, mean=1.000000e+00
[PRECISION] in [device=gpu:0, op=cast, tensor=c, dtype=fp16], numel=1, num_zero=0, max=1.600000e+01, min=9.000000e+00, mean=1.000000e+00
"""]


class Sheet:
    """Keeps what is written; of float16's number of zeros, which Paddle takes from the float32 run, only that it is there."""

    def __init__(self, calls):
        self.calls = calls

    def __getattr__(self, name):
        def keep(*arguments):
            if name == "write" and arguments[0] > 1 and arguments[1] == 13:
                arguments = arguments[:2]
            self.calls.append([name, *(a.item() if isinstance(a, np.generic) else a for a in arguments)])
        return keep


def _written(folders, scale):
    calls = []
    book = types.SimpleNamespace(add_format=lambda form: form["bg_color"], add_worksheet=lambda name: calls.append(name) or Sheet(calls),
                                 close=lambda: calls.append("closed"))
    sys.modules["xlsxwriter"] = types.SimpleNamespace(Workbook=lambda path: calls.append(path) or book)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            debugging.compare_accuracy(*folders, "out.xlsx", loss_scale=scale)
    finally:
        del sys.modules["xlsxwriter"]
    return calls


@case(D + "compare_accuracy", grad=False)
def workbook_of_two_logs():
    with tempfile.TemporaryDirectory() as root:
        folders = [os.path.join(root, name) for name in ("wide", "low")]
        for folder, text in zip(folders, LOGS):
            os.mkdir(folder)
            with open(os.path.join(folder, "worker_gpu.0"), "w") as log:
                log.write(text)
        same = _written(folders[:1] * 2, 1)
        pair = _written(folders, 8)
        with open(os.path.join(folders[0], "worker_gpu.1"), "w") as log:
            log.write(LOGS[0])
        return same, pair, _written(folders, 1), raised(
            lambda: debugging.compare_accuracy(*folders, "out", dump_all_tensors=True), AssertionError)


@case("paddle.static.amp.debugging.collect_operator_stats", grad=False)
def operators_of_a_program():
    paddle.enable_static()
    try:
        program, out = paddle.static.Program(), io.StringIO()
        with paddle.static.program_guard(program):
            x, ids = paddle.static.data("x", [4, 4]), paddle.static.data("ids", [2], "int64")
            y = paddle.nn.functional.relu(paddle.nn.functional.embedding(ids, x))
            y = paddle.cast(paddle.cast(y, "float16"), "float32")
            paddle.static.nn.cond(paddle.mean(y) > 0, lambda: paddle.exp(y), lambda: paddle.tanh(y))
        with contextlib.redirect_stdout(out):
            paddle.static.amp.debugging.collect_operator_stats(program)
            paddle.static.amp.debugging.collect_operator_stats(program, print_subblocks=True)
    finally:
        paddle.disable_static()
    lines = out.getvalue().splitlines()
    shown = ("relu", "lookup_table_v2", "cast", "exp", "tanh")
    return [line for line in lines if line.split("|")[0].strip() in shown], [line for line in lines if "of all blocks" in line or "of block 0" in line]
