"""paddle.vision.models: state names and shapes, and the outputs of the same weights."""
from paddle.vision import models

from parity import case, fill, rand

M = "paddle.vision.models."


def state(net):
    return [(k, list(v.shape)) for k, v in net.state_dict().items()]


def add(name, names, make, size=64, channels=3):
    def run():
        net = fill(make(), 0.1)
        net.eval()
        return state(net), net(rand(1, channels, size, size, grad=False))
    run.__name__ = name
    # dozens of layers add up their rounding
    case(*(M + n for n in names), tol=1e-3, grad=False)(run)


def add_names(name, names, make):
    def run():
        return state(make())
    run.__name__ = name
    case(*(M + n for n in names), grad=False)(run)


add("lenet", ["LeNet"], models.LeNet, 28, 1)
add("lenet_features", ["LeNet"], lambda: models.LeNet(num_classes=0), 28, 1)
add("resnet18", ["ResNet", "resnet18"], lambda: models.resnet18(num_classes=7))
add("resnet50", ["resnet50"], lambda: models.resnet50(num_classes=7, with_pool=True))
add("resnet_features", ["ResNet"], lambda: models.resnet18(num_classes=0, with_pool=False))
add("mobilenet_v1", ["MobileNetV1", "mobilenet_v1"], lambda: models.mobilenet_v1(scale=0.5, num_classes=7))
add("mobilenet_v2", ["MobileNetV2", "mobilenet_v2"], lambda: models.mobilenet_v2(scale=0.5, num_classes=7))
add("squeezenet1_0", ["SqueezeNet", "squeezenet1_0"], lambda: models.squeezenet1_0(num_classes=7))
add("squeezenet1_1", ["squeezenet1_1"], lambda: models.squeezenet1_1(num_classes=7))
add("vgg11", ["VGG", "vgg11"], lambda: models.vgg11(batch_norm=True, num_classes=0), 32)
add_names("resnet34", ["resnet34"], models.resnet34)
add_names("resnet101", ["resnet101"], models.resnet101)
add_names("resnet152", ["resnet152"], models.resnet152)
add_names("resnext50_32x4d", ["resnext50_32x4d"], models.resnext50_32x4d)
add_names("wide_resnet50_2", ["wide_resnet50_2"], models.wide_resnet50_2)
for depth in (13, 16, 19):
    add_names(f"vgg{depth}", [f"vgg{depth}"], lambda d=depth: getattr(models, f"vgg{d}")(num_classes=0))
