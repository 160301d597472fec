"""Tensor arrays: written and read in programs, grown in loops, differentiated, saved and loaded; lists eagerly."""
import os
import tempfile

import numpy as np
import paddle
import paddle.static as static
from parity import array, case, leave, rand

tensor = paddle.tensor


def f32(*shape):
    return array(*shape).astype("float32")


def built(build, feed, grads=True):
    """Fetches, gradients of their sum, and fetches of the saved and loaded model."""
    paddle.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            folder = tempfile.mkdtemp()
            inputs = {n: static.data(n, [-1 if i == 0 else d for i, d in enumerate(v.shape)], str(v.dtype))
                      for n, v in feed.items()}
            for x in inputs.values():
                x.stop_gradient = False
            outs = build(**inputs)
            exe = static.Executor()
            exe.run(startup)
            prefix = os.path.join(folder, "m")
            static.save_inference_model(prefix, list(inputs.values()), outs, exe, program=main)
            found = exe.run(main, feed, outs)
            leave(folder, {n: (v, []) for n, v in feed.items()}, [np.array(o) for o in found])
            if grads:
                total = sum((o * o).sum() for o in outs if "int" not in str(o.dtype).lower())
                found += exe.run(main, feed, static.gradients([total], list(inputs.values())))
            program, feeds, fetches = static.load_inference_model(prefix, exe)
            return found, exe.run(program, {n: feed[n] for n in feeds}, fetches)
    finally:
        paddle.disable_static()


def at(i):
    return paddle.full([1], i, "int64")


@case("paddle.tensor.create_array", "paddle.tensor.array_write", "paddle.tensor.array_read",
      "paddle.tensor.array_length")
def straight():
    def build(x):
        a = tensor.create_array("float32")
        tensor.array_write(x, at(0), a)
        tensor.array_write(x * 2.0, at(1), a)
        tensor.array_write(paddle.tanh(x), at(2), a)
        b = tensor.create_array("float32", [x, x + 1.0])
        c = tensor.array_write(x * 3.0, tensor.array_length(b), b)
        return [tensor.array_read(a, at(0)), tensor.array_read(a, at(1)) + tensor.array_read(a, at(2)), tensor.array_length(a),
                tensor.array_read(c, at(2)) + tensor.array_read(b, at(1)), tensor.array_length(b)]
    return built(build, {"x": f32(2, 3)})


@case("paddle.tensor.create_array", "paddle.tensor.array_write", "paddle.tensor.array_read",
      "paddle.tensor.array_length")
def eager():
    x = rand(2, 3)
    a = tensor.create_array("float32")
    tensor.array_write(x, at(0), a)
    tensor.array_write(x * 2.0, at(1), a)
    b = tensor.array_write(x + 1.0, at(0))
    return [tensor.array_read(a, at(1)), tensor.array_length(a), tensor.array_read(b, at(0)), len(a)]


@case("paddle.static.nn.while_loop", "paddle.tensor.array_write")
def grown_in_a_loop():
    def build(x):
        i, n = paddle.full([1], 0, "int64"), paddle.full([1], 4, "int64")
        a = tensor.create_array("float32")
        a = tensor.array_write(x, i, a)

        def body(i, a):
            h = paddle.tanh(tensor.array_read(a, i) * 1.5)
            i = i + 1
            return [i, tensor.array_write(h, i, a)]

        i, a = static.nn.while_loop(lambda i, a: i < n, body, [i, a])
        return [tensor.array_length(a), tensor.array_read(a, at(2)), tensor.array_read(a, at(4))]
    return built(build, {"x": f32(2, 3)}, grads=False)
