"""Attributes that variables supply in static programs: values, static shapes, gradients, and saved models, which the other side
loads."""
import os
import tempfile

import numpy as np
import paddle
import paddle.static as static
from parity import array, case, leave


_kept = []  # Paddle's attributes refer to variables of programs that may be gone


def supplied(function, x, values, grad=True):
    """For each value, function of x and of a variable that holds it: shapes before the run, results, the gradient of a
    sum of squares for x, and the same results from the saved model."""
    paddle.enable_static()
    try:
        return [_one(function, x, np.asarray(value), grad) for value in values]
    finally:
        paddle.disable_static()


def _one(function, x, value, grad):
    main, startup, exe = static.Program(), static.Program(), static.Executor(paddle.CPUPlace())
    _kept.append(main)
    prefix, feed = os.path.join(tempfile.mkdtemp(), "m"), {"x": x, "given": value}
    with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
        inputs = [static.data(name, list(v.shape), str(v.dtype)) for name, v in feed.items()]
        inputs[0].stop_gradient = False
        outs = function(*inputs)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        shapes = [list(one.shape) for one in outs]
        static.save_inference_model(prefix, inputs, outs, exe, program=main)
        floating = [one for one in outs if grad and one.dtype == inputs[0].dtype and "float" in str(x.dtype)]
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
PLACES = [np.int64(0), np.int32(1), i64(2)]  # where Paddle takes no negative axis


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


@case("paddle.squeeze", "paddle.unsqueeze", grad=False)
def axes_that_come_and_go():
    x = f32(1, 3, 1, 2)
    return supplied(paddle.squeeze, x, [np.int64(0), i64(-2), i64(2, 0)]), \
        supplied(lambda x, a: paddle.squeeze(x, [0, a]), x, [i64(2), np.int32(-2)]), \
        supplied(paddle.unsqueeze, x, [np.int64(1), i64(-1, 0), i64(2).astype("int32")]), \
        supplied(lambda x, a: paddle.unsqueeze(x, [0, a]), x, [i64(2), np.int32(-1)])


@case("paddle.concat", "paddle.split", "paddle.chunk", "paddle.nn.functional.glu", grad=False)
def axis_of_joins_and_parts():
    x = f32(4, 2, 6)
    return supplied(lambda x, a: paddle.concat([x, x * 2.0, paddle.tanh(x)], a), x, AXIS), \
        supplied(lambda x, a: paddle.concat([x], a), x, AXIS[:2]), \
        [supplied(lambda x, a, f=f: f(x, 2, a), x, PLACES) for f in (paddle.split, paddle.chunk)], \
        supplied(lambda x, a: paddle.split(x, [1, -1], a), x, PLACES), \
        supplied(lambda x, a: paddle.split(x, [1, 1], a), x, AXIS[:1]), \
        supplied(paddle.nn.functional.glu, x, PLACES[:2])


@case("paddle.split", grad=False)
def lengths_and_axis_of_parts():
    x = f32(4, 3, 6)
    return [one[1:] for one in supplied(lambda x, a: paddle.split(x, [a, 2], a), x, [np.int64(1), i64(1)])]


@case("paddle.gather", grad=False)
def axis_of_gather():
    """Paddle's shape before the run is that along axis 0, as is its gradient, and it reads beyond x for a negative axis."""
    x, index = f32(3, 4, 5), np.array([2, 0, 1, 1])
    return [one[1:] for one in supplied(lambda x, a: paddle.gather(x, paddle.to_tensor(index), a), x, PLACES, False)], \
        [one[1:] for one in supplied(lambda x, a: paddle.gather(x, paddle.to_tensor(index[:2]).astype("int32"), a) * 2.0, x, PLACES, False)]


@case("paddle.topk", "paddle.nn.functional.one_hot", grad=False)
def counts():
    x = f32(3, 4, 5)
    return supplied(paddle.topk, x, [np.int64(2), np.int32(1), i64(4)]), \
        supplied(lambda x, k: paddle.topk(x, k, axis=0, largest=False), x, [np.int64(2), i64(3)]), \
        supplied(paddle.nn.functional.one_hot, np.array([0, 3, 1]), [np.int64(4), np.int32(6), i64(5)])


@case("paddle.mean", "paddle.std", "paddle.nn.functional.cosine_similarity", grad=False)
def kept_axes_broadcast():
    """The gradient of a normalization goes through its statistics, whose axes are fed."""
    x = f32(3, 4, 5)
    return supplied(lambda x, a: (x - paddle.mean(x, a, keepdim=True)) ** 3 / paddle.std(x, a, keepdim=True), x, AXES), \
        supplied(lambda x, a: paddle.nn.functional.cosine_similarity(x, x * x + 1.0, axis=a), x, [i64(1), i64(-1)])


def i32(*values):
    return np.array(values, "int32")


@case("paddle.nn.functional.pad", "paddle.nn.functional.zeropad2d", grad=False)
def paddings():
    pad, x = paddle.nn.functional.pad, f32(2, 3, 4, 5)
    return supplied(lambda x, p: pad(x[0], p, data_format="NLC"), x, [i32(1, 2), i32(0, 3)]), \
        [supplied(lambda x, p, mode=mode: pad(x, p, mode=mode), x, [i32(1, 2, 0, 1), i32(0, 0, 2, 1)])
         for mode in ("constant", "reflect", "replicate", "circular")], \
        supplied(lambda x, p: pad(x, p, value=0.5, data_format="NHWC"), x, [i32(1, 2, 0, 1)]), \
        supplied(lambda x, p: pad(x.unsqueeze(0), p, data_format="NCDHW"), x, [i32(1, 2, 0, 1, 3, 0), i64(1, 2, 0, 1, 3, 0)]), \
        supplied(paddle.nn.functional.zeropad2d, x, [i32(1, 2, 0, 1)])


@case("paddle.nn.functional.affine_grid", grad=False)
def shape_of_a_grid():
    theta = f32(2, 2, 3)
    return [one[1:] for corners in (True, False) for one in supplied(
        lambda x, n: paddle.nn.functional.affine_grid(x, n, corners), theta, [i32(2, 3, 4, 5), i32(2, 1, 2, 3)])]
