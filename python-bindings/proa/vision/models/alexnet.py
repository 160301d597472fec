"""AlexNet (Krizhevsky et al., 2012), in its one-tower form."""
import math

from ... import nn
from ...framework import ParamAttr
from ...nn import functional as F
from ...tensor import flatten
from ._parts import pretrained_refused


def _uniform(fan):
    bound = 1.0 / math.sqrt(fan)
    return {key: ParamAttr(initializer=nn.initializer.Uniform(-bound, bound))
            for key in ("weight_attr", "bias_attr")}


class _ConvPool(nn.Layer):
    def __init__(self, channels, filters, size, stride, padding):
        super().__init__()
        self.relu = nn.ReLU()
        self._conv = nn.Conv2D(channels, filters, size, stride, padding, **_uniform(channels * size * size))
        self._pool = nn.MaxPool2D(3, 2)

    def forward(self, x):
        return self._pool(self.relu(self._conv(x)))


class AlexNet(nn.Layer):
    """Five convolutions and three linear layers, for 224×224 images."""

    def __init__(self, num_classes=1000):
        super().__init__()
        self.num_classes = num_classes
        self._conv1 = _ConvPool(3, 64, 11, 4, 2)
        self._conv2 = _ConvPool(64, 192, 5, 1, 2)
        self._conv3 = nn.Conv2D(192, 384, 3, padding=1, **_uniform(192 * 9))
        self._conv4 = nn.Conv2D(384, 256, 3, padding=1, **_uniform(384 * 9))
        self._conv5 = _ConvPool(256, 256, 3, 1, 1)
        if num_classes > 0:
            self._drop1 = nn.Dropout(0.5, mode="downscale_in_infer")
            self._fc6 = nn.Linear(256 * 36, 4096, **_uniform(256 * 36))
            self._drop2 = nn.Dropout(0.5, mode="downscale_in_infer")
            self._fc7 = nn.Linear(4096, 4096, **_uniform(256 * 36))
            self._fc8 = nn.Linear(4096, num_classes, **_uniform(256 * 36))

    def forward(self, inputs):
        x = self._conv2(self._conv1(inputs))
        x = self._conv5(F.relu(self._conv4(F.relu(self._conv3(x)))))
        if self.num_classes > 0:
            x = F.relu(self._fc6(self._drop1(flatten(x, 1))))
            x = self._fc8(F.relu(self._fc7(self._drop2(x))))
        return x


def alexnet(pretrained=False, **kwargs):
    """An AlexNet."""
    pretrained_refused(pretrained, "alexnet")
    return AlexNet(**kwargs)
