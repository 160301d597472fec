"""Attributes that variables supply in static programs: values, static shapes, gradients, and saved models, which the other side
loads."""
import os
import tempfile

import numpy as np
import paddle
import paddle.static as static
from parity import array, case, leave


def supplied(function, x, values):
    """For each value, function of x and of a variable that holds it: shapes before the run, results, the gradient of a
    sum of squares for x, and the same results from the saved model."""
    paddle.enable_static()
    try:
        return [_one(function, x, np.asarray(value)) for value in values]
    finally:
        paddle.disable_static()


def _one(function, x, value):
    main, startup, exe = static.Program(), static.Program(), static.Executor(paddle.CPUPlace())
    prefix, feed = os.path.join(tempfile.mkdtemp(), "m"), {"x": x, "given": value}
    with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
        inputs = [static.data(name, list(v.shape), str(v.dtype)) for name, v in feed.items()]
        inputs[0].stop_gradient = False
        outs = function(*inputs)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        shapes = [list(one.shape) for one in outs]
        static.save_inference_model(prefix, inputs, outs, exe, program=main)
        floating = [one for one in outs if one.dtype == inputs[0].dtype and "float" in str(x.dtype)]
        grads = static.gradients([sum((one * one).sum() for one in floating)], inputs[:1]) if floating else []
        results = exe.run(main, feed, [*outs, *(g for g in grads if g is not None)])
        program, names, fetches = static.load_inference_model(prefix, exe)
        again = exe.run(program, {name: feed[name] for name in names}, fetches)
    leave(os.path.dirname(prefix), {name: (v, []) for name, v in feed.items()}, results[:len(outs)])
    return shapes, results, again


def f32(*shape):
    return array(*shape, low=0.5, high=1.5).astype("float32")


def i64(*values):
    return np.array(values, "int64")


AXES = [i64(1), i64(-1).astype("int32"), i64(0, 2), i64(-1, 0), i64(0, 2, 1)]
AXIS = [np.int64(1), np.int32(-1), i64(2), i64(-3)]


@case("paddle.sum", "paddle.mean", "paddle.max", "paddle.min", "paddle.prod", "paddle.std", "paddle.var", grad=False)
def axes_of_reductions():
    x = f32(3, 4, 5)
    return [supplied(one, x, AXES) for one in (paddle.sum, paddle.mean, paddle.max, paddle.min, paddle.prod, paddle.std, paddle.var)]


@case("paddle.sum", "paddle.mean", "paddle.max", "paddle.prod", "paddle.nansum", "paddle.nanmean", "paddle.count_nonzero", grad=False)
def axes_of_reductions_among_numbers():
    x = f32(3, 4, 5)
    return [supplied(lambda x, a, one=one, keep=keep: one(x, [0, a], keepdim=keep), x, [i64(1), i64(-1).astype('int32')]) for keep in (False, True)
            for one in (paddle.sum, paddle.mean, paddle.max, paddle.prod, paddle.nansum, paddle.nanmean)], \
        supplied(lambda x, a: paddle.count_nonzero(x > 1, [a], keepdim=True), x, AXIS)


@case("paddle.cumsum", "paddle.argmax", "paddle.argmin", grad=False)
def axis_of_scans_and_places():
    x = f32(3, 4, 5)
    return [supplied(one, x, AXIS) for one in (paddle.cumsum, paddle.argmax, paddle.argmin)]
