"""Layers of static.nn that ranking, text and detection use."""
import numpy as np
import paddle
import paddle.static as static
from parity import array, case


def built(build, feed, steps=1):
    paddle.enable_static()
    try:
        main, startup, scope = static.Program(), static.Program(), static.Scope()
        with static.scope_guard(scope), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            fetch = build()
            exe = static.Executor(paddle.CPUPlace())
            exe.run(startup)
            return [exe.run(main, feed, fetch) for _ in range(steps)]
    finally:
        paddle.disable_static()


def given(*shape, scale=1.0):
    return paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(array(*shape).astype("float32") * scale))


def f32(*shape, **options):
    return array(*shape, **options).astype("float32")


@case("paddle.static.nn.nce")
def noise_contrastive():
    """The distribution names one class alone, so that both sides draw the same."""
    w, b = given(5, 4), given(5, 1)

    def build():
        x, label, weight = static.data("x", [None, 4]), static.data("label", [None, 1], "int64"), \
            static.data("weight", [None, 1])
        x.stop_gradient = False
        cost = static.nn.nce(x, label, 5, param_attr=w, bias_attr=b, num_neg_samples=3, sampler="custom_dist",
                             custom_dist=[0.0, 0.0, 1.0, 0.0, 0.0], sample_weight=weight)
        plain = static.nn.nce(x, label, 5, param_attr=w, bias_attr=b, num_neg_samples=2, sampler="custom_dist",
                              custom_dist=[0.0, 1.0, 0.0, 0.0, 0.0])
        return [cost, plain, static.gradients([cost.sum() + (plain * plain).sum()], [x])[0]]
    return built(build, {"x": f32(3, 4), "label": np.array([[2], [2], [2]]), "weight": f32(3, 1, low=0.5)})


@case("paddle.static.nn.data_norm")
def data_normalization():
    def build():
        x = static.data("x", [None, 3])
        x.stop_gradient = False
        y = static.nn.data_norm(x, name="n", param_attr={"batch_size": 4.0, "batch_sum": 2.0, "batch_square": 9.0})
        loss = (y * y).sum()
        params = static.default_main_program().all_parameters()
        grads = [g for _, g in sorted(static.append_backward(loss), key=lambda pair: pair[0].name)]
        return [y, *static.gradients([loss], [x]), *grads, *sorted(params, key=lambda p: p.name)]
    return built(build, {"x": f32(4, 3)})


@case("paddle.static.nn.sparse_embedding")
def table_of_many_rows():
    """Shapes alone: in Paddle it runs only beside a parameter server."""
    paddle.enable_static()
    try:
        main = static.Program()
        with static.program_guard(main, static.Program()), paddle.utils.unique_name.guard():
            out = static.nn.sparse_embedding(static.data("ids", [None, 1], "int64"), [6, 3], param_attr=given(6, 3))
            return list(out.shape), str(out.dtype).rpartition(".")[2].lower().replace("fp", "float"), \
                [list(p.shape) for p in main.all_parameters()]
    finally:
        paddle.disable_static()


@case("paddle.static.nn.deform_conv2d")
def deformable():
    a, b, c = given(4, 2, 3, 3, scale=0.3), given(4), given(4, 2, 3, 3, scale=0.3)

    def build():
        x, offset, mask = static.data("x", [2, 2, 6, 6]), static.data("offset", [2, 18, 4, 4]), \
            static.data("mask", [2, 9, 4, 4])
        return [static.nn.deform_conv2d(x, offset, mask, 4, 3, weight_attr=a, bias_attr=b),
                static.nn.deform_conv2d(x, offset, None, 4, 3, weight_attr=c, bias_attr=False)]
    return built(build, {"x": f32(2, 2, 6, 6), "offset": f32(2, 18, 4, 4), "mask": f32(2, 9, 4, 4, low=0.0)})


@case("paddle.static.nn.spectral_norm")
def spectral():
    """Many power iterations reach the largest singular value from any start."""
    def build():
        return [static.nn.spectral_norm(static.data("w", [4, 3, 2]), dim=1, power_iters=100)]
    return built(build, {"w": f32(4, 3, 2)})
