"""MobileNet V3 (Howard et al., 2019), small and large."""
from functools import partial

from ... import nn
from ...tensor import flatten
from ._parts import ConvNormActivation, pretrained_refused, rounded

# kernel, channels expanded, channels out, squeeze and excitation, hardswish, stride
_SMALL = ((3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2), (5, 240, 40, 1, 1, 1),
          (5, 240, 40, 1, 1, 1), (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1), (5, 288, 96, 1, 1, 2),
          (5, 576, 96, 1, 1, 1), (5, 576, 96, 1, 1, 1))
_LARGE = ((3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1),
          (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
          (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2),
          (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1))


class SqueezeExcitation(nn.Layer):
    """Scales each channel by what two 1×1 convolutions make of all channels' means."""

    def __init__(self, input_channels, squeeze_channels, activation=nn.ReLU, scale_activation=nn.Sigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2D(1)
        self.fc1 = nn.Conv2D(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2D(squeeze_channels, input_channels, 1)
        self.activation, self.scale_activation = activation(), scale_activation()

    def forward(self, x):
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x))))) * x


class _InvertedResidual(nn.Layer):
    def __init__(self, channels, expanded, out_channels, kernel, stride, squeeze, activation, norm):
        super().__init__()
        self.use_res_connect = stride == 1 and channels == out_channels
        self.use_se, self.expand = squeeze, channels != expanded
        if self.expand:
            self.expand_conv = ConvNormActivation(channels, expanded, 1, norm_layer=norm, activation_layer=activation)
        self.bottleneck_conv = ConvNormActivation(expanded, expanded, kernel, stride, groups=expanded, norm_layer=norm,
                                                  activation_layer=activation)
        if squeeze:
            self.mid_se = SqueezeExcitation(expanded, rounded(expanded // 4), scale_activation=nn.Hardsigmoid)
        self.linear_conv = ConvNormActivation(expanded, out_channels, 1, norm_layer=norm, activation_layer=None)

    def forward(self, x):
        past = x
        if self.expand:
            x = self.expand_conv(x)
        x = self.bottleneck_conv(x)
        if self.use_se:
            x = self.mid_se(x)
        x = self.linear_conv(x)
        return past + x if self.use_res_connect else x


class MobileNetV3(nn.Layer):
    """Inverted residuals by a table of rows; `scale` multiplies the channels, rounded to eights."""

    def __init__(self, config, last_channel, scale=1.0, num_classes=1000, with_pool=True):
        super().__init__()
        self.config, self.scale, self.last_channel = config, scale, last_channel
        self.num_classes, self.with_pool = num_classes, with_pool
        norm = partial(nn.BatchNorm2D, epsilon=0.001, momentum=0.99)
        channels = rounded(16 * scale)
        self.conv = ConvNormActivation(3, channels, 3, 2, norm_layer=norm, activation_layer=nn.Hardswish)
        blocks = []
        for kernel, expanded, out, squeeze, swish, stride in config:
            blocks.append(_InvertedResidual(channels, rounded(expanded * scale), rounded(out * scale), kernel, stride,
                                            bool(squeeze), nn.Hardswish if swish else nn.ReLU, norm))
            channels = rounded(out * scale)
        self.blocks = nn.Sequential(*blocks)
        self.lastconv = ConvNormActivation(channels, channels * 6, 1, norm_layer=norm, activation_layer=nn.Hardswish)
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = nn.Sequential(nn.Linear(channels * 6, last_channel), nn.Hardswish(), nn.Dropout(p=0.2),
                                            nn.Linear(last_channel, num_classes))

    def forward(self, x):
        x = self.lastconv(self.blocks(self.conv(x)))
        if self.with_pool:
            x = self.avgpool(x)
        return self.classifier(flatten(x, 1)) if self.num_classes > 0 else x


class MobileNetV3Small(MobileNetV3):
    """The small one: eleven blocks."""

    def __init__(self, scale=1.0, num_classes=1000, with_pool=True):
        super().__init__(_SMALL, rounded(1024 * scale), scale, num_classes, with_pool)


class MobileNetV3Large(MobileNetV3):
    """The large one: fifteen blocks."""

    def __init__(self, scale=1.0, num_classes=1000, with_pool=True):
        super().__init__(_LARGE, rounded(1280 * scale), scale, num_classes, with_pool)


def mobilenet_v3_small(pretrained=False, scale=1.0, **kwargs):
    """A MobileNetV3Small."""
    pretrained_refused(pretrained, "mobilenet_v3_small")
    return MobileNetV3Small(scale=scale, **kwargs)


def mobilenet_v3_large(pretrained=False, scale=1.0, **kwargs):
    """A MobileNetV3Large."""
    pretrained_refused(pretrained, "mobilenet_v3_large")
    return MobileNetV3Large(scale=scale, **kwargs)
