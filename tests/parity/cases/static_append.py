"""Operators given by their type, and averages of parameters in programs."""
import functools

import numpy as np
import paddle
import paddle.static as static
from parity import case

NUMBERS = np.arange(6, dtype="float32").reshape(2, 3)


def in_static(fn):
    @functools.wraps(fn)
    def inside():
        paddle.enable_static()
        try:
            return fn()
        finally:
            paddle.disable_static()
    return inside


def run(main, startup, fetched, feed=None, times=1):
    exe = static.Executor(paddle.CPUPlace())
    exe.run(startup)
    return [[np.array(one) for one in exe.run(main, feed=feed or {"x": NUMBERS}, fetch_list=fetched)]
            for _ in range(times)]


@case("paddle.static.Block.append_op", "paddle.static.Block.create_var", "paddle.static.Block.create_parameter")
@in_static
def appended():
    """Variables by object, name and list; a counter that a run keeps; a gradient through it all."""
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 3], "float32")
        block = main.global_block()
        out, product = block.create_var(name="doubled", dtype="float32"), block.create_var(dtype="float32")
        operator = block.append_op(type="scale", inputs={"X": [x]}, outputs={"Out": [out]},
                                   attrs={"scale": 2.0, "bias": 1.0, "bias_after_scale": True})
        shapes = [operator.type, list(out.shape)]
        for owner in (startup.global_block(), block):
            initial = {"initializer": paddle.nn.initializer.Constant(0.5)} if owner is not block else {}
            w = owner.create_parameter(shape=[3, 4], dtype="float32", name="w_appended", **initial)
        block.append_op(type="matmul_v2", inputs={"X": "doubled", "Y": w}, outputs={"Out": product},
                        attrs={"trans_x": False, "trans_y": False})
        for owner in (startup.global_block(), block):
            count = owner.create_var(name="count_appended", shape=[1], dtype="float32", persistable=True)
            if owner is not block:
                owner.append_op(type="fill_constant", outputs={"Out": count},
                                attrs={"shape": [1], "value": 5.0, "dtype": 5})
        block.append_op(type="increment", inputs={"X": count}, outputs={"Out": count}, attrs={"step": 2.0})
        parts = [block.create_var(dtype="float32") for _ in range(2)]
        block.append_op(type="split", inputs={"X": product}, outputs={"Out": parts}, attrs={"num": 2, "axis": 1})
        loss = paddle.mean(parts[0] * parts[1])
        paddle.optimizer.SGD(0.1).minimize(loss)
    return shapes, run(main, startup, [out, product, loss, count, "w_appended"], times=3)


@case("paddle.static.Block.append_op")
@in_static
def made_anew():
    """An operator whose output is there already: the variable goes on as what it has become."""
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 3], "float32")
        block = main.global_block()
        total = block.create_var(dtype="float32")
        block.append_op(type="sum", inputs={"X": [x, x]}, outputs={"Out": total})
        for factor in (0.5, 3.0):
            block.append_op(type="scale", inputs={"X": total}, outputs={"Out": total}, attrs={"scale": factor})
        block.append_op(type="assign", inputs={"X": total}, outputs={"Out": total})
        given = block.create_var(dtype="float32")
        paddle.assign(total, output=given)
        more = given + 1
    return run(main, startup, [total, given, more])


@case("paddle.static.Block.append_op")
@in_static
def put_in_front():
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 3], "float32")
        y = paddle.exp(x)
        block = main.global_block()
        first, second = block.create_var(dtype="float32"), block.create_var(dtype="float32")
        block._prepend_op(type="relu", inputs={"X": x}, outputs={"Out": first})
        block._insert_op(1, type="square", inputs={"X": first}, outputs={"Out": second})
        kinds = [op.type for op in block.ops]
    return kinds, run(main, startup, [first, second, y])


@case("paddle.static.Block.append_op")
@in_static
def refused():
    """Types that there are not, and inputs that are no variables."""
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [None, 3], "float32")
        block = static.default_main_program().global_block()
        found = []
        for kind, value in (("nosuch", x), ("relu", object())):
            try:
                block.append_op(type=kind, inputs={"X": value}, outputs={"Out": block.create_var(dtype="float32")})
                found.append("taken")
            except (ValueError, TypeError, NotImplementedError):
                found.append("refused")
    return found


@case("paddle.static.ExponentialMovingAverage", "paddle.static.ExponentialMovingAverage.update",
      "paddle.static.ExponentialMovingAverage.apply", "paddle.static.ExponentialMovingAverage.restore")
@in_static
def averages():
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 3], "float32")
        constant = paddle.nn.initializer.Constant
        y = static.nn.fc(x, 4, weight_attr=paddle.ParamAttr(name="w_ema", initializer=constant(0.3)), activation="tanh")
        z = static.nn.fc(y, 1, weight_attr=paddle.ParamAttr(name="v_ema", initializer=constant(0.7)))
        loss = paddle.mean(z * z)
        test = main.clone(for_test=True)
        paddle.optimizer.Momentum(0.1).minimize(loss)
        average = static.ExponentialMovingAverage(0.9, name="shadow")
        average.update()
    exe = static.Executor(paddle.CPUPlace())
    exe.run(startup)
    found, rng = [], np.random.RandomState(0)
    for step in range(4):
        feed = {"x": rng.rand(4, 3).astype("float32")}
        found.append([np.array(one) for one in exe.run(main, feed=feed, fetch_list=[loss, "w_ema"])])
        with average.apply(exe, need_restore=step != 2):
            found.append([np.array(one) for one in exe.run(test, feed=feed, fetch_list=[loss.name, "w_ema"])])
        found.append([np.array(one) for one in exe.run(test, feed=feed, fetch_list=[loss.name, "w_ema"])])
        if step == 2:
            average.restore(exe)
    return found
