"""Sequences of different lengths in static programs (LoD): forward, backward, and saved models."""
import os
import tempfile

import numpy as np
import paddle
import paddle.static as static
from parity import array, case, leave

nn = static.nn


def lod_tensor(values, *lengths):
    """A value that is fed to a variable with lod_level."""
    t = static.Scope().var("fed").get_tensor()
    t.set(np.asarray(values), paddle.CPUPlace())
    t.set_recursive_sequence_lengths([list(level) for level in lengths])
    return t


def f32(*shape):
    return array(*shape).astype("float32")


def plain(results):
    """Fetched tensors as (array, lod)."""
    return [(np.array(r), r.lod()) for r in results]


def weights(shape, scale=1.0):
    return paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(f32(*shape) * scale))


def built(build, feed, grad_lods=True):
    """The results of build(); then the gradients of a weighted sum of them for the inputs it marks and the parameters.
    Everything once more from the saved model, but for gradients."""
    paddle.enable_static()
    try:
        main, startup, scope = static.Program(), static.Program(), static.Scope()
        with static.scope_guard(scope), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            folder = tempfile.mkdtemp()
            _marked.clear()
            outs = build()
            exe = static.Executor(paddle.CPUPlace())
            exe.run(startup)
            names = [v.name for v in main.list_vars() if v.name in feed]
            names = [n for n in feed if n in names]
            inputs = [main.global_block().var(n) for n in names]
            prefix = os.path.join(folder, "m")
            static.save_inference_model(prefix, inputs, outs, exe, program=main)
            total = sum((o * o * 0.5 + o).sum() for o in outs if "float" in str(o.dtype).lower() or "FP32" in str(o.dtype))
            wanted = [v for v in _marked if v.name in names] + main.all_parameters()
            grads = [g for g in static.gradients([total], wanted) if g is not None] if wanted else []
            found = plain(exe.run(main, feed, [*outs, *grads], return_numpy=False))
            found[len(outs):] = [(g, lod if grad_lods else []) for g, lod in found[len(outs):]]
            leave(folder, {n: (np.array(v), [] if isinstance(v, np.ndarray) else v.recursive_sequence_lengths())
                           for n, v in feed.items()},
                  [a for a, _ in found[:len(outs)]])
            program, feeds, fetches = static.load_inference_model(prefix, exe)
            again = plain(exe.run(program, {n: feed[n] for n in feeds}, fetches, return_numpy=False))
            return found, feeds, again
    finally:
        paddle.disable_static()


_marked = []  # inputs whose gradients are compared


def data(name, width=3, dtype="float32", grad=True, lod=1):
    x = static.data(name, [-1, width], dtype, lod_level=lod)
    if grad:
        x.stop_gradient = False
        _marked.append(x)
    return x


@case("paddle.static.nn.sequence_pool", "paddle.static.nn.sequence_first_step", "paddle.static.nn.sequence_last_step")
def pools():
    def build():
        x = data("x")
        return [*(nn.sequence_pool(x, kind) for kind in ("sum", "average", "sqrt", "max", "last", "first")),
                nn.sequence_first_step(x * 2.0), nn.sequence_last_step(paddle.tanh(x)),
                nn.sequence_pool(x, "average", pad_value=7.0)]
    return built(build, {"x": lod_tensor(f32(7, 3), [2, 4, 1])}), built(build, {"x": lod_tensor(f32(5, 3), [2, 0, 3])})


@case("paddle.static.nn.sequence_softmax", "paddle.static.nn.sequence_reverse")
def softmax_and_reverse():
    def build():
        x, y = data("x", 1), data("y", 4)
        return [nn.sequence_softmax(x), nn.sequence_reverse(y), nn.sequence_reverse(paddle.nn.functional.relu(y))]
    return built(build, {"x": lod_tensor(f32(6, 1), [1, 5]), "y": lod_tensor(f32(6, 4), [3, 3])})


@case("paddle.static.nn.sequence_conv")
def convolution():
    a, b, c = weights([9, 4]), weights([6, 2]), weights([4])

    def build():
        x = data("x")
        return [nn.sequence_conv(x, 4, 3, param_attr=a, bias_attr=c, act="tanh"),
                nn.sequence_conv(x, 2, 2, padding_start=0, param_attr=b, bias_attr=False)]
    return built(build, {"x": lod_tensor(f32(7, 3), [4, 1, 2])})


@case("paddle.static.nn.row_conv", "paddle.assign")
def steps_ahead():
    def build():
        x = data("x")
        first = paddle.assign(np.array([0.5], "float32"))  # of a program, as pad_value must be
        return [nn.row_conv(x, 2, param_attr=weights([3, 3]), act="tanh"), nn.sequence_pad(x, first)[0]]
    return built(build, {"x": lod_tensor(f32(7, 3), [4, 1, 2])}, grad_lods=False)


@case("paddle.static.nn.sequence_expand", "paddle.static.nn.sequence_expand_as")
def expansions():
    def build():
        rows = data("rows", lod=0)
        x, y, deep = data("x"), data("y", 1, grad=False), data("deep", 1, grad=False, lod=2)
        return [nn.sequence_expand(rows, y), nn.sequence_expand(x, y), nn.sequence_expand_as(rows, y),
                nn.sequence_expand(x, deep, ref_level=0)]
    return built(build, {"rows": f32(2, 3), "x": lod_tensor(f32(4, 3), [3, 1]), "y": lod_tensor(f32(5, 1), [2, 3]),
                         "deep": lod_tensor(f32(6, 1), [1, 2], [2, 1, 3])})


@case("paddle.static.nn.sequence_concat", "paddle.static.nn.sequence_reshape")
def joined():
    def build():
        x, y = data("x", 4), data("y", 4)
        both = nn.sequence_concat([x, y, x])
        return [both, nn.sequence_pool(both, "sum"), nn.sequence_reshape(x, 2), nn.sequence_reshape(both, 8)]
    return built(build, {"x": lod_tensor(f32(5, 4), [2, 3]), "y": lod_tensor(f32(4, 4), [2, 2])})


@case("paddle.static.nn.sequence_pad", "paddle.static.nn.sequence_unpad")
def padded():
    def build():
        x = data("x", 2)
        zero = paddle.full([1], 0.5, "float32")
        out, length = nn.sequence_pad(x, zero)
        longer, _ = nn.sequence_pad(x, zero, maxlen=6)
        return [out, length, longer, nn.sequence_unpad(out * 2.0, length),
                nn.sequence_pool(nn.sequence_unpad(longer, length), "average")]
    return built(build, {"x": lod_tensor(f32(8, 2), [1, 3, 4])})


@case("paddle.static.nn.sequence_slice")
def sliced():
    def build():
        x = data("x")
        offset, length = static.data("offset", [-1, 1], "int64"), static.data("length", [-1, 1], "int64")
        return [nn.sequence_slice(x, offset, length)]
    return built(build, {"x": lod_tensor(f32(8, 3), [5, 3]), "offset": np.array([[1], [0]]),
                         "length": np.array([[2], [3]])})


@case("paddle.static.nn.sequence_enumerate", "paddle.static.nn.sequence_scatter")
def ids():
    def build():
        ids = data("ids", 1, "int64", grad=False)
        table, updates = data("table", 6, lod=0), data("updates", 1)
        return [nn.sequence_enumerate(ids, 3, pad_value=9), nn.sequence_scatter(table, ids, updates)]
    return built(build, {"ids": lod_tensor(np.array([[1], [3], [3], [0], [5]]), [3, 2]), "table": f32(2, 6),
                         "updates": lod_tensor(f32(5, 1), [3, 2])}, grad_lods=False)  # Paddle's has none for updates


@case("paddle.static.Variable.lod_level")
def text_model():
    """Words of sentences: embedding, layers that keep the sequences, pooling; trained, and its levels."""
    table, w, v = weights([20, 6], 0.3), weights([6, 6]), weights([6, 2])
    seen = []

    def build():
        words = static.data("words", [-1, 1], "int64", lod_level=1)
        x = nn.embedding(words, [20, 6], param_attr=table)
        x = paddle.reshape(x, [-1, 6])
        h = nn.fc(x, 6, weight_attr=w, activation="tanh")
        seen.append(words.lod_level)
        return [nn.fc(nn.sequence_pool(h, "max"), 2, weight_attr=v), nn.sequence_pool(h, "sum")]
    words = np.array([[1], [4], [7], [7], [0], [19]])
    return built(build, {"words": lod_tensor(words, [4, 2])}), seen


def likelihood(emission, transition, label, length=None):
    """The op linear_chain_crf, for which neither side's static.nn has a name."""
    outs = ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")
    if hasattr(paddle, "_core"):  # Proa
        offsets = None if length is not None else paddle._core.variable_lod(emission)[-1]
        made = paddle._core.linear_chain_crf(emission, transition, label, length, offsets)
        for one in made[:2] if length is None else ():
            paddle._core.set_variable_lod(one, paddle._core.variable_lod(emission))
        return made[3]
    from paddle.base.layer_helper import LayerHelper
    helper = LayerHelper("linear_chain_crf")
    made = [helper.create_variable_for_type_inference("float32") for _ in outs]
    inputs = {"Emission": emission, "Transition": transition, "Label": label}
    if length is not None:
        inputs["Length"] = length
    helper.append_op(type="linear_chain_crf", inputs=inputs, outputs=dict(zip(outs, made)))
    return made[3]


def decoded(emission, name, length=None):
    """The op crf_decoding, which 2.6.2 has no function for."""
    if hasattr(paddle, "_core"):
        return nn.crf_decoding(emission, paddle.ParamAttr(name), length=length)
    from paddle.base.layer_helper import LayerHelper
    helper = LayerHelper("crf_decoding")
    path = helper.create_variable_for_type_inference("int64")
    inputs = {"Emission": emission, "Transition": static.default_main_program().global_block().var(name)}
    if length is not None:
        inputs["Length"] = length
    helper.append_op(type="crf_decoding", inputs=inputs, outputs={"ViterbiPath": path})
    return path


@case("paddle.static.nn.crf_decoding")
def chains():
    w = f32(6, 4) * 0.5

    def build():
        x, tags = data("x", 4), data("tags", 1, "int64", grad=False)
        transition = static.create_parameter([6, 4], "float32", "transition",
                                             default_initializer=paddle.nn.initializer.Assign(w))
        return [likelihood(x, transition, tags), decoded(x, "transition")]
    return built(build, {"x": lod_tensor(f32(7, 4), [3, 1, 3]),
                         "tags": lod_tensor(np.array([[0], [3], [2], [1], [1], [1], [0]]), [3, 1, 3])}, grad_lods=False)


@case("paddle.static.nn.crf_decoding")
def padded_chains():
    w = f32(5, 3) * 0.5

    def build():
        x, tags, length = static.data("x", [2, 4, 3]), static.data("tags", [2, 4], "int64"), static.data("length", [2, 1], "int64")
        x.stop_gradient = False
        _marked.append(x)
        transition = static.create_parameter([5, 3], "float32", "transition",
                                             default_initializer=paddle.nn.initializer.Assign(w))
        return [likelihood(x, transition, tags, length), decoded(x, "transition", length)]
    return built(build, {"x": f32(2, 4, 3), "tags": np.array([[0, 2, 1, 1], [2, 0, 0, 0]]), "length": np.array([[4], [2]])},
                 grad_lods=False)
