"""CostModel: times of a program's operators, and of single operators, measured on this machine."""
import time

from .. import _core

__all__ = []

_SIDE = 256       # of the operands: large enough that a call's own cost does not count
_REPEATS = 5      # the least time of them counts
_BATCH = 4


def _operands(shapes, dtype):
    """Fresh leaves of uniform values."""
    made = [_core.cast(_core.uniform(list(shape), "float32", 0.5, 1.5), dtype).detach() for shape in shapes]
    for one in made:
        one.stop_gradient = False
    return made


def _one(function, *shapes):
    return function, shapes or ((_SIDE, _SIDE),)


def _measured():
    """The operators that static_cost_data measures: {type: (function, shapes of its operands)}."""
    from .. import tensor
    from ..nn import functional as F
    square = (_SIDE, _SIDE)
    table = {name: _one(getattr(tensor, name)) for name in ("abs", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "square", "floor")}
    table.update({name: _one(getattr(F, name)) for name in ("relu", "sigmoid", "softmax", "gelu", "log_softmax", "elu", "leaky_relu")})
    table.update({"elementwise_" + short: _one(getattr(tensor, name), square, square) for short, name in {
        "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "max": "maximum", "min": "minimum", "pow": "pow"}.items()})
    table.update({"reduce_" + name: _one(getattr(tensor, name)) for name in ("sum", "mean", "max", "min", "prod")})
    table["matmul"] = _one(_core.matmul, square, square)
    table["conv2d"] = _one(lambda x, w: F.conv2d(x, w, padding=1), (_BATCH, 16, 32, 32), (16, 16, 3, 3))
    table["pool2d"] = _one(lambda x: F.max_pool2d(x, 2), (_BATCH, 16, 32, 32))
    table["layer_norm"] = _one(lambda x: F.layer_norm(x, _SIDE))
    table["transpose"] = _one(lambda x: _core.transpose(x, [1, 0]))
    table["concat"] = _one(lambda x, y: _core.concat([x, y], 0), square, square)
    return table


def _least(call):
    """The least of some runs' times, in milliseconds."""
    best = float("inf")
    for _ in range(_REPEATS):
        _core.synchronize()
        start = time.perf_counter()
        call()
        _core.synchronize()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def _entry(op, function, shapes, dtype):
    """An operator's row; None: it does not take the dtype, or has no gradient for it."""
    operands = _operands(shapes, dtype)
    try:
        forward = _least(lambda: function(*operands))
        out = function(*operands)
        gradient = _core.full(out.shape, 1.0, dtype)
        backward = _least(lambda: out.backward(gradient, retain_graph=True))
    except (RuntimeError, NotImplementedError):
        return None
    config = "".join(f"{name} (Variable) - dtype: {dtype}, shape: {list(shape)}\n" for name, shape in zip("xy", shapes))
    return {"name": f"{op}_0", "op": op, "config": config, "paddle_gpu_time": forward, "paddle_gpu_time_backward": backward,
            "device": _core.get_device()}


class CostModel:
    """Costs of operators. static_cost_data measures on the current device; its keys are called as in Paddle, whose table is of one
    GPU."""

    def __init__(self):
        pass

    def build_program(self):
        """(startup program, main program) of a small training; turns static mode on."""
        from .. import enable_static, optimizer, static
        from ..tensor import mean
        enable_static()
        startup, main = static.Program(), static.Program()
        with static.program_guard(main, startup):
            hidden = static.nn.fc(static.data("X", [None, 1], "float32"), 10)
            optimizer.SGD(learning_rate=0.01).minimize(mean(hidden))
        print(f"main program is: {main}")
        return startup, main

    def profile_measure(self, startup_program, main_program, device="gpu", fetch_cost_list=["time"]):
        """Runs a program with an input X [10, 1] on a device; {operator: milliseconds}, by Proa's names. ValueError if there is no such
        device."""
        import numpy as np
        from .. import static
        from ..device import set_device
        from ..profiler import Profiler
        before = _core.get_device()
        executor = static.Executor(set_device(device))
        try:
            with static.scope_guard(static.Scope()):
                executor.run(startup_program)
                feed = {"X": np.random.random(size=(10, 1)).astype("float32")}
                with Profiler(on_trace_ready=lambda profiler: None) as profiler:
                    executor.run(main_program, feed=feed, fetch_list=[])
        finally:
            _core.set_device(before)
        costs = {}
        for name, is_op, _, total, *_ in profiler.profiler_result.rows:
            if is_op:
                costs[name] = costs.get(name, 0.0) + total * 1e3
        return costs

    def static_cost_data(self):
        """Rows of common operators in float32 and float16: op, config, and the milliseconds of forward and backward."""
        from ..framework import mode
        with mode.eager():
            rows = [_entry(op, *what, dtype) for op, what in _measured().items() for dtype in ("float32", "float16")]
        self._static_cost_data = [row for row in rows if row is not None]
        return self._static_cost_data

    def get_static_op_time(self, op_name, forward=True, dtype="float32"):
        """{"op_time": milliseconds, "config": operands} of an operator in static_cost_data's rows; empty: it has none."""
        if op_name is None:
            raise ValueError("get_static_op_time: op_name should not be empty when you want to get static op time")
        key = "paddle_gpu_time" if forward else "paddle_gpu_time_backward"
        found = [row for row in self._static_cost_data if row["op"] == op_name and dtype in row["config"]]
        return {"op_time": found[-1][key], "config": found[-1]["config"]} if found else {}
