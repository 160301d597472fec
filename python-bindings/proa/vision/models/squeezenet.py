"""SqueezeNet (Iandola et al., 2016), versions 1.0 and 1.1."""
from ... import nn
from ...nn import functional as F
from ...tensor import concat, squeeze
from ._parts import pretrained_refused

_FIRES = ((96, 16, 64), (128, 16, 64), (128, 32, 128), (256, 32, 128), (256, 48, 192), (384, 48, 192),
          (384, 64, 256), (512, 64, 256))


class _FireConv(nn.Layer):
    def __init__(self, channels, filters, size, padding=0):
        super().__init__()
        self._conv = nn.Conv2D(channels, filters, size, padding=padding)

    def forward(self, x):
        return F.relu(self._conv(x))


class _Fire(nn.Layer):
    def __init__(self, channels, squeezed, expanded):
        super().__init__()
        self._conv = _FireConv(channels, squeezed, 1)
        self._conv_path1 = _FireConv(squeezed, expanded, 1)
        self._conv_path2 = _FireConv(squeezed, expanded, 3, padding=1)

    def forward(self, x):
        x = self._conv(x)
        return concat([self._conv_path1(x), self._conv_path2(x)], axis=1)


class SqueezeNet(nn.Layer):
    """Eight fire modules between poolings; version '1.0' or '1.1'."""

    def __init__(self, version, num_classes=1000, with_pool=True):
        super().__init__()
        if version not in ("1.0", "1.1"):
            raise ValueError(f"SqueezeNet: version must be '1.0' or '1.1', got {version!r}")
        self.version = version
        self.num_classes = num_classes
        self.with_pool = with_pool
        old = version == "1.0"
        self._conv = nn.Conv2D(3, 96, 7, stride=2) if old else nn.Conv2D(3, 64, 3, stride=2, padding=1)
        self._pool = nn.MaxPool2D(3, 2)
        for k, (channels, squeezed, expanded) in enumerate(_FIRES):
            setattr(self, f"_conv{k + 1}", _Fire(channels if old or k else 64, squeezed, expanded))
        self._drop = nn.Dropout(0.5, mode="downscale_in_infer")
        self._conv9 = nn.Conv2D(512, num_classes, 1)
        self._avg_pool = nn.AdaptiveAvgPool2D(1)

    def forward(self, inputs):
        x = self._pool(F.relu(self._conv(inputs)))
        pooled_after = (3, 7) if self.version == "1.0" else (2, 4)
        for k in range(1, 9):
            x = getattr(self, f"_conv{k}")(x)
            if k in pooled_after:
                x = self._pool(x)
        if self.num_classes > 0:
            x = self._conv9(self._drop(x))
        return squeeze(self._avg_pool(F.relu(x)), axis=[2, 3]) if self.with_pool else x


def squeezenet1_0(pretrained=False, **kwargs):
    """A SqueezeNet 1.0."""
    pretrained_refused(pretrained, "squeezenet1_0")
    return SqueezeNet("1.0", **kwargs)


def squeezenet1_1(pretrained=False, **kwargs):
    """A SqueezeNet 1.1."""
    pretrained_refused(pretrained, "squeezenet1_1")
    return SqueezeNet("1.1", **kwargs)
