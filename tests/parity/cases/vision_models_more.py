"""MobileNetV3, ShuffleNetV2, DenseNet, GoogLeNet, InceptionV3: state, outputs, losses and gradients of equal weights."""
import numpy as np
import paddle
from paddle.vision import models

from parity import case, fill, raised, rand

M = "paddle.vision.models."


def state(net):
    return [(k, list(v.shape)) for k, v in net.state_dict().items()]


def add(name, names, make, size=64, gradient=True):
    def run():
        net = fill(make(), 0.1)
        net.eval()
        x = rand(1, 3, size, size, grad=False)
        out = net(x)
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        if not gradient:
            return state(net), outs
        loss = paddle.add_n([o.square().mean() for o in outs])
        loss.backward()
        grads = [p.grad for p in net.parameters() if p.grad is not None]
        return state(net), outs, loss, len(grads), grads[0], grads[len(grads) // 2], grads[-1]
    run.__name__ = name
    # dozens of layers add up their rounding
    case(*(M + n for n in names), tol=1e-3, grad=False)(run)


def add_names(name, makes):
    def run():
        return [state(getattr(models, n)(num_classes=2)) for n in makes]
    run.__name__ = name
    case(*(M + n for n in makes), grad=False)(run)


add("mobilenet_v3_small", ["MobileNetV3Small", "mobilenet_v3_small"], lambda: models.mobilenet_v3_small(num_classes=5))
add("mobilenet_v3_large", ["MobileNetV3Large", "mobilenet_v3_large"],
    lambda: models.mobilenet_v3_large(scale=0.35, num_classes=5))
add("shufflenet", ["ShuffleNetV2", "shufflenet_v2_x0_25"], lambda: models.shufflenet_v2_x0_25(num_classes=5))
add("shufflenet_swish", ["shufflenet_v2_swish"], lambda: models.shufflenet_v2_swish(num_classes=5), gradient=False)
add("densenet", ["DenseNet", "densenet121"], lambda: models.densenet121(num_classes=5))
add("googlenet", ["GoogLeNet", "googlenet"], lambda: models.googlenet(num_classes=5), size=224, gradient=False)
add("inception", ["InceptionV3", "inception_v3"], lambda: models.inception_v3(num_classes=5), size=96)
add_names("shufflenets", ["shufflenet_v2_x0_33", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5",
                          "shufflenet_v2_x2_0"])
add_names("densenets", ["densenet161", "densenet169", "densenet201", "densenet264"])


@case(M + "ShuffleNetV2", M + "DenseNet", M + "MobileNetV3Small", grad=False)
def settings():
    headless = fill(models.MobileNetV3Small(0.5, num_classes=0, with_pool=False), 0.1)
    headless.eval()
    out = headless(paddle.to_tensor(np.linspace(-1, 1, 3 * 32 * 32, dtype="float32").reshape([1, 3, 32, 32])))
    return [out.shape, raised(lambda: models.ShuffleNetV2(0.7)), raised(lambda: models.DenseNet(7)),
            raised(lambda: models.ShuffleNetV2(act="tanh"))]
