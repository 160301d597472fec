"""Whole trainings of image models as they come: fifty losses from the same weights."""
import numpy as np
import paddle
from paddle.nn import functional as F
from paddle.vision.models import mobilenet_v2, resnet18

from parity import array, case, fill, ints

# sums in another order, carried from step to step
TOL = 1e-5


def fifty(net, dtype, size):
    net.train()
    optimizer = paddle.optimizer.Momentum(1e-5, 0.9, net.parameters())
    batches = [(paddle.to_tensor(array(4, 3, size, size).astype(dtype)), ints(4, high=10)) for _ in range(3)]
    losses = []
    for step in range(50):
        images, labels = batches[step % 3]
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses


@case("paddle.vision.models.resnet18", grad=False, tol=TOL)
def resnet_18():
    """Images of 64: of 32 the last normalizations have four numbers a channel, and one relu's other side makes another training."""
    return fifty(fill(resnet18(num_classes=10), 0.1), "float32", 64)


@case("paddle.vision.models.mobilenet_v2", "paddle.set_default_dtype", grad=False, tol=TOL)
def mobilenet():
    """In float64: fifty normalizations of four samples leave float32 gradients right to a tenth, in Paddle as here."""
    was = paddle.get_default_dtype()
    paddle.set_default_dtype("float64")
    try:
        net = mobilenet_v2(num_classes=10)
        net.classifier[0].p = 0.0  # masks are drawn by other generators
        draw = np.random.RandomState(3)
        for _, p in sorted(net.state_dict().items()):
            if len(p.shape) > 1:  # as He et al. begin; normalizations stay as they come
                fan = np.prod(p.shape[1:]) if len(p.shape) > 2 else p.shape[0]
                p.set_value(draw.standard_normal(p.shape) * (2.0 / fan) ** 0.5)
        return fifty(net, "float64", 64)
    finally:
        paddle.set_default_dtype(was)
