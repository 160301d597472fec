"""VGG (Simonyan and Zisserman, 2014): 3×3 convolutions between poolings, with or without normalization."""
from ... import nn
from ...tensor import flatten
from ._parts import pretrained_refused

# convolutions before each of the five poolings
_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def make_layers(cfg, batch_norm=False):
    """The convolutions of a list of their channels; 'M' is a pooling."""
    layers, channels = [], 3
    for item in cfg:
        if item == "M":
            layers.append(nn.MaxPool2D(2, 2))
            continue
        layers.append(nn.Conv2D(channels, item, 3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2D(item))
        layers.append(nn.ReLU())
        channels = item
    return nn.Sequential(*layers)


class VGG(nn.Layer):
    """`features`, pooled to 7×7 (with_pool), then three linear layers (num_classes > 0)."""

    def __init__(self, features, num_classes=1000, with_pool=True):
        super().__init__()
        self.features = features
        self.num_classes = num_classes
        self.with_pool = with_pool
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((7, 7))
        if num_classes > 0:
            self.classifier = nn.Sequential(nn.Linear(512 * 49, 4096), nn.ReLU(), nn.Dropout(),
                                            nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(),
                                            nn.Linear(4096, num_classes))

    def forward(self, x):
        x = self.features(x)
        if self.with_pool:
            x = self.avgpool(x)
        return self.classifier(flatten(x, 1)) if self.num_classes > 0 else x


def _vgg(depth, batch_norm, pretrained, kwargs):
    pretrained_refused(pretrained, f"vgg{depth}")
    cfg = [c for n, channels in zip(_DEPTHS[depth], (64, 128, 256, 512, 512)) for c in [channels] * n + ["M"]]
    return VGG(make_layers(cfg, batch_norm), **kwargs)


def vgg11(pretrained=False, batch_norm=False, **kwargs):
    """A VGG with 11 layers."""
    return _vgg(11, batch_norm, pretrained, kwargs)


def vgg13(pretrained=False, batch_norm=False, **kwargs):
    """A VGG with 13 layers."""
    return _vgg(13, batch_norm, pretrained, kwargs)


def vgg16(pretrained=False, batch_norm=False, **kwargs):
    """A VGG with 16 layers."""
    return _vgg(16, batch_norm, pretrained, kwargs)


def vgg19(pretrained=False, batch_norm=False, **kwargs):
    """A VGG with 19 layers."""
    return _vgg(19, batch_norm, pretrained, kwargs)
