"""A whole training of an image model as it comes: fifty losses from the same weights."""
import paddle
from paddle.nn import functional as F
from paddle.vision.models import resnet18

from parity import array, case, fill, ints

# float32 sums in another order, carried from step to step
TOL = 1e-4


@case("paddle.vision.models.resnet18", grad=False, tol=TOL)
def resnet_18():
    net = fill(resnet18(num_classes=10), 0.1)
    net.train()
    optimizer = paddle.optimizer.Momentum(1e-5, 0.9, net.parameters())
    batches = [(paddle.to_tensor(array(4, 3, 32, 32).astype("float32")), ints(4, high=10)) for _ in range(3)]
    losses = []
    for step in range(50):
        images, labels = batches[step % 3]
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses
