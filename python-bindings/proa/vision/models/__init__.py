"""paddle.vision.models: image classifiers. State names and shapes are Paddle's, so that its weights load."""
from . import resnet as _resnet
from .alexnet import AlexNet, alexnet  # noqa: F401
from .lenet import LeNet  # noqa: F401
from .mobilenet import MobileNetV1, MobileNetV2, mobilenet_v1, mobilenet_v2  # noqa: F401
from .resnet import ResNet  # noqa: F401
from .squeezenet import SqueezeNet, squeezenet1_0, squeezenet1_1  # noqa: F401
from .vgg import VGG, vgg11, vgg13, vgg16, vgg19  # noqa: F401

_resnets = [n for n in vars(_resnet) if n.startswith(("resnet", "resnext", "wide_resnet"))]
globals().update({n: getattr(_resnet, n) for n in _resnets})

__all__ = ["AlexNet", "LeNet", "MobileNetV1", "MobileNetV2", "ResNet", "SqueezeNet", "VGG", "alexnet",
           "mobilenet_v1", "mobilenet_v2", "squeezenet1_0", "squeezenet1_1", "vgg11", "vgg13", "vgg16", "vgg19",
           *_resnets]
