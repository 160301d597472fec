"""paddle.vision.models: image classifiers. State names and shapes are Paddle's, so that its weights load."""
from . import resnet as _resnet
from .alexnet import AlexNet, alexnet
from .densenet import DenseNet, densenet121, densenet161, densenet169, densenet201, densenet264
from .googlenet import GoogLeNet, googlenet
from .inceptionv3 import InceptionV3, inception_v3
from .lenet import LeNet
from .mobilenet import MobileNetV1, MobileNetV2, mobilenet_v1, mobilenet_v2
from .mobilenetv3 import MobileNetV3Large, MobileNetV3Small, mobilenet_v3_large, mobilenet_v3_small
from .resnet import ResNet
from .shufflenetv2 import (ShuffleNetV2, shufflenet_v2_swish, shufflenet_v2_x0_5, shufflenet_v2_x0_25,
                           shufflenet_v2_x0_33, shufflenet_v2_x1_0, shufflenet_v2_x1_5, shufflenet_v2_x2_0)
from .squeezenet import SqueezeNet, squeezenet1_0, squeezenet1_1
from .vgg import VGG, vgg11, vgg13, vgg16, vgg19

_resnets = [n for n in vars(_resnet) if n.startswith(("resnet", "resnext", "wide_resnet"))]
globals().update({n: getattr(_resnet, n) for n in _resnets})

__all__ = ["AlexNet", "DenseNet", "GoogLeNet", "InceptionV3", "LeNet", "MobileNetV1", "MobileNetV2", "MobileNetV3Large",
           "MobileNetV3Small", "ResNet", "ShuffleNetV2", "SqueezeNet", "VGG", "alexnet", "densenet121", "densenet161",
           "densenet169", "densenet201", "densenet264", "googlenet", "inception_v3", "mobilenet_v1", "mobilenet_v2",
           "mobilenet_v3_large", "mobilenet_v3_small", "shufflenet_v2_swish", "shufflenet_v2_x0_25",
           "shufflenet_v2_x0_33", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5",
           "shufflenet_v2_x2_0", "squeezenet1_0", "squeezenet1_1", "vgg11", "vgg13", "vgg16", "vgg19", *_resnets]
