"""Names of 2.x beside those of 2.1: what a Tensor is made of, activations in place, the transducer's loss."""
import numpy as np
import paddle

from parity import case, ints, rand, raised

T = "paddle.Tensor."


@case(T + "data", T + "layout", T + "offset", T + "grad_", T + "get_strides", T + "detach_", T + "num_shard", T + "placements",
      T + "process_mesh", T + "dist_attr", grad=False)
def tensor_attributes():
    x = rand(2, 3)
    y = x * 2
    y.sum().backward()
    z = x * 3
    z.detach_()
    return (x.data, x.layout, x.offset, x.grad_, x.get_strides(), x.T.get_strides(), z, z.stop_gradient, z.is_leaf,
            [x.num_shard, x.placements, x.process_mesh, x.dist_attr])


@case("paddle.nn.functional.hardtanh_", "paddle.nn.functional.leaky_relu_", "paddle.nn.functional.thresholded_relu_")
def activations_in_place():
    x, F = rand(2, 3), paddle.nn.functional
    made = [f(x * 1.0, *more) for f, more in ((F.hardtanh_, ()), (F.hardtanh_, (-0.5, 0.25)), (F.leaky_relu_, ()),
                                              (F.leaky_relu_, (0.3,)), (F.thresholded_relu_, ()))]
    y = x * 1.0
    return made, F.leaky_relu_(y) is y


@case("paddle.nn.functional.rnnt_loss", "paddle.nn.RNNTLoss")
def transducer():
    x = paddle.nn.functional.log_softmax(rand(3, 5, 4, 6), -1)
    label, frames = ints(3, 3, low=1, high=6, dtype="int32"), paddle.to_tensor(np.array([5, 3, 1], "int32"))
    labels = paddle.to_tensor(np.array([3, 1, 2], "int32"))
    F = paddle.nn.functional
    return ([F.rnnt_loss(x, label, frames, labels, 0, e, r) for e, r in ((0.0, "none"), (0.5, "mean"), (0.001, "sum"))],
            F.rnnt_loss(x, label % 5, frames, labels, blank=5), paddle.nn.RNNTLoss()(x, label, frames, labels),
            raised(lambda: F.rnnt_loss(x, label, frames, labels, reduction="max"), ValueError, AssertionError))


@case("paddle.nn.functional.class_center_sample", grad=False)
def sampled_class_centers():
    label = ints(12, low=0, high=20)
    whole = [paddle.nn.functional.class_center_sample(label, 20, n) for n in (1, 3)]  # fewer than the classes that are named
    number, classes = paddle.nn.functional.class_center_sample(label.astype("int32"), 20, 15)
    drawn, named = classes.numpy(), len(np.unique(label.numpy()))
    return (whole, str(number.dtype).rpartition(".")[2].lower(), classes.shape, drawn[:named], len(np.unique(drawn)), drawn[number.numpy()],
            raised(lambda: paddle.nn.functional.class_center_sample(label, 5, 6), ValueError),
            raised(lambda: paddle.nn.functional.class_center_sample(ints(3, 4), 20, 6), ValueError))


@case("paddle.autograd.saved_tensors_hooks")
def hooks_of_saved_tensors():
    seen = []

    def pack(t):
        seen.append(t.shape)
        return t.numpy()

    class Cube(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, dy):
            x, = ctx.saved_tensor()
            return dy * 3 * x * x
    x, y = rand(2, 3), rand(2, 3)
    with paddle.autograd.saved_tensors_hooks(pack, paddle.to_tensor):
        product = x * y
        power = paddle.exp(x)
        nested = raised(lambda: paddle.autograd.saved_tensors_hooks(pack, paddle.to_tensor).__enter__(), ValueError)
    with paddle.autograd.saved_tensors_hooks(pack, paddle.to_tensor):
        cube = Cube.apply(y)
    return nested, product, power, cube, sorted(seen), paddle.matmul(x, y, transpose_y=True)


@case("paddle.LazyGuard")
def parameters_without_values():
    guard = paddle.LazyGuard()
    with guard:
        net = paddle.nn.Linear(3, 2, weight_attr=paddle.nn.initializer.Constant(0.5))
    shapes = [p.shape for p in net.parameters()]
    for p in net.parameters():
        p.initialize()
    ready = paddle.nn.Linear(3, 2)
    return shapes, net.weight, net.bias, net(rand(4, 3)), [p.stop_gradient for p in net.parameters()], \
        raised(lambda: ready.weight.initialize(), AssertionError)
