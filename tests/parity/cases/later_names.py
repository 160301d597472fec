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
