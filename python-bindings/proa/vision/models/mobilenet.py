"""MobileNet V1 (Howard et al., 2017), V2 (Sandler et al., 2018)."""
from ... import nn
from ...tensor import flatten
from ._parts import ConvNormActivation, pretrained_refused, rounded


class _DepthwiseSeparable(nn.Layer):
    def __init__(self, channels, out_channels, stride):
        super().__init__()
        self._depthwise_conv = ConvNormActivation(channels, channels, 3, stride, 1, groups=channels)
        self._pointwise_conv = ConvNormActivation(channels, out_channels, 1, 1, 0)

    def forward(self, x):
        return self._pointwise_conv(self._depthwise_conv(x))


class MobileNetV1(nn.Layer):
    """Thirteen depthwise-separable convolutions; `scale` multiplies the channels."""

    def __init__(self, scale=1.0, num_classes=1000, with_pool=True):
        super().__init__()
        self.scale = scale
        self.num_classes = num_classes
        self.with_pool = with_pool
        self.conv1 = ConvNormActivation(3, int(32 * scale), 3, 2, 1)
        rows = [("2_1", 32, 64, 1), ("2_2", 64, 128, 2), ("3_1", 128, 128, 1), ("3_2", 128, 256, 2),
                ("4_1", 256, 256, 1), ("4_2", 256, 512, 2), *((f"5_{k}", 512, 512, 1) for k in range(1, 6)),
                ("5_6", 512, 1024, 2), ("6", 1024, 1024, 1)]
        self.dwsl = [self.add_sublayer(f"conv{name}", _DepthwiseSeparable(int(a * scale), int(b * scale), stride))
                     for name, a, b, stride in rows]
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.fc = nn.Linear(int(1024 * scale), num_classes)

    def forward(self, x):
        x = self.conv1(x)
        for block in self.dwsl:
            x = block(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.fc(flatten(x, 1)) if self.num_classes > 0 else x


class _InvertedResidual(nn.Layer):
    def __init__(self, channels, out_channels, stride, expand):
        super().__init__()
        self.use_res_connect = stride == 1 and channels == out_channels
        hidden = int(round(channels * expand))
        parts = [ConvNormActivation(channels, hidden, 1, activation_layer=nn.ReLU6)] if expand != 1 else []
        self.conv = nn.Sequential(
            *parts, ConvNormActivation(hidden, hidden, stride=stride, groups=hidden, activation_layer=nn.ReLU6),
            nn.Conv2D(hidden, out_channels, 1, bias_attr=False), nn.BatchNorm2D(out_channels))

    def forward(self, x):
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Layer):
    """Inverted residuals; `scale` multiplies the channels, rounded to eights."""

    def __init__(self, scale=1.0, num_classes=1000, with_pool=True):
        super().__init__()
        self.num_classes = num_classes
        self.with_pool = with_pool
        channels = rounded(32 * scale)
        self.last_channel = rounded(1280 * max(1.0, scale))
        parts = [ConvNormActivation(3, channels, stride=2, activation_layer=nn.ReLU6)]
        for expand, width, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                             (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for k in range(count):
                parts.append(_InvertedResidual(channels, rounded(width * scale), 1 if k else stride, expand))
                channels = rounded(width * scale)
        parts.append(ConvNormActivation(channels, self.last_channel, 1, activation_layer=nn.ReLU6))
        self.features = nn.Sequential(*parts)
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(self.last_channel, num_classes))

    def forward(self, x):
        x = self.features(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.classifier(flatten(x, 1)) if self.num_classes > 0 else x


def mobilenet_v1(pretrained=False, scale=1.0, **kwargs):
    """A MobileNetV1."""
    pretrained_refused(pretrained, "mobilenet_v1")
    return MobileNetV1(scale=scale, **kwargs)


def mobilenet_v2(pretrained=False, scale=1.0, **kwargs):
    """A MobileNetV2."""
    pretrained_refused(pretrained, "mobilenet_v2")
    return MobileNetV2(scale=scale, **kwargs)
