"""Inception V3 (Szegedy et al., 2015)."""
from ... import nn
from ...nn.initializer import Uniform
from ...tensor import concat
from ._parts import ConvNormActivation, pretrained_refused


def _conv(channels, out_channels, kernel, stride=1, padding=0):
    return ConvNormActivation(channels, out_channels, kernel, stride, padding)


class _Stem(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv_1a_3x3 = _conv(3, 32, 3, 2)
        self.conv_2a_3x3 = _conv(32, 32, 3)
        self.conv_2b_3x3 = _conv(32, 64, 3, padding=1)
        self.max_pool = nn.MaxPool2D(kernel_size=3, stride=2)
        self.conv_3b_1x1 = _conv(64, 80, 1)
        self.conv_4a_3x3 = _conv(80, 192, 3)

    def forward(self, x):
        x = self.max_pool(self.conv_2b_3x3(self.conv_2a_3x3(self.conv_1a_3x3(x))))
        return self.max_pool(self.conv_4a_3x3(self.conv_3b_1x1(x)))


class _Branches(nn.Layer):
    """Convolutions by name, made in the order of `rows`; `ways` lists the names of each way, whose ends are joined."""
    ways = ()

    def _add(self, rows):
        for name, row in rows.items():
            setattr(self, name, row if isinstance(row, nn.Layer) else _conv(*row))

    def forward(self, x):
        ends = []
        for way in self.ways:
            out = x
            for name in way:
                if isinstance(name, tuple):  # the way splits at its end
                    out = concat([getattr(self, n)(out) for n in name], axis=1)
                else:
                    out = getattr(self, name)(out)
            ends.append(out)
        return concat(ends, axis=1)


def _mean():
    return nn.AvgPool2D(kernel_size=3, stride=1, padding=1, exclusive=False)


class _A(_Branches):
    ways = (("branch1x1",), ("branch5x5_1", "branch5x5_2"), ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"),
            ("branch_pool", "branch_pool_conv"))

    def __init__(self, channels, pooled):
        super().__init__()
        self._add({"branch1x1": (channels, 64, 1), "branch5x5_1": (channels, 48, 1), "branch5x5_2": (48, 64, 5, 1, 2),
                   "branch3x3dbl_1": (channels, 64, 1), "branch3x3dbl_2": (64, 96, 3, 1, 1),
                   "branch3x3dbl_3": (96, 96, 3, 1, 1), "branch_pool": _mean(),
                   "branch_pool_conv": (channels, pooled, 1)})


class _B(_Branches):
    ways = (("branch3x3",), ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"), ("branch_pool",))

    def __init__(self, channels):
        super().__init__()
        self._add({"branch3x3": (channels, 384, 3, 2), "branch3x3dbl_1": (channels, 64, 1),
                   "branch3x3dbl_2": (64, 96, 3, 1, 1), "branch3x3dbl_3": (96, 96, 3, 2),
                   "branch_pool": nn.MaxPool2D(kernel_size=3, stride=2)})


class _C(_Branches):
    ways = (("branch1x1",), ("branch7x7_1", "branch7x7_2", "branch7x7_3"),
            tuple(f"branch7x7dbl_{k}" for k in range(1, 6)), ("branch_pool", "branch_pool_conv"))

    def __init__(self, channels, inner):
        super().__init__()
        flat, tall = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
        self._add({"branch1x1": (channels, 192, 1), "branch7x7_1": (channels, inner, 1),
                   "branch7x7_2": (inner, inner, *flat), "branch7x7_3": (inner, 192, *tall),
                   "branch7x7dbl_1": (channels, inner, 1), "branch7x7dbl_2": (inner, inner, *tall),
                   "branch7x7dbl_3": (inner, inner, *flat), "branch7x7dbl_4": (inner, inner, *tall),
                   "branch7x7dbl_5": (inner, 192, *flat), "branch_pool": _mean(),
                   "branch_pool_conv": (channels, 192, 1)})


class _D(_Branches):
    ways = (("branch3x3_1", "branch3x3_2"), tuple(f"branch7x7x3_{k}" for k in range(1, 5)), ("branch_pool",))

    def __init__(self, channels):
        super().__init__()
        self._add({"branch3x3_1": (channels, 192, 1), "branch3x3_2": (192, 320, 3, 2),
                   "branch7x7x3_1": (channels, 192, 1), "branch7x7x3_2": (192, 192, (1, 7), 1, (0, 3)),
                   "branch7x7x3_3": (192, 192, (7, 1), 1, (3, 0)), "branch7x7x3_4": (192, 192, 3, 2),
                   "branch_pool": nn.MaxPool2D(kernel_size=3, stride=2)})


class _E(_Branches):
    ways = (("branch1x1",), ("branch3x3_1", ("branch3x3_2a", "branch3x3_2b")),
            ("branch3x3dbl_1", "branch3x3dbl_2", ("branch3x3dbl_3a", "branch3x3dbl_3b")),
            ("branch_pool", "branch_pool_conv"))

    def __init__(self, channels):
        super().__init__()
        flat, tall = (384, 384, (1, 3), 1, (0, 1)), (384, 384, (3, 1), 1, (1, 0))
        self._add({"branch1x1": (channels, 320, 1), "branch3x3_1": (channels, 384, 1), "branch3x3_2a": flat,
                   "branch3x3_2b": tall, "branch3x3dbl_1": (channels, 448, 1), "branch3x3dbl_2": (448, 384, 3, 1, 1),
                   "branch3x3dbl_3a": flat, "branch3x3dbl_3b": tall, "branch_pool": _mean(),
                   "branch_pool_conv": (channels, 192, 1)})


class InceptionV3(nn.Layer):
    """A stem, eleven blocks of parallel ways, a pooling and a linear layer; for images of 299 × 299."""

    def __init__(self, num_classes=1000, with_pool=True):
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        self.inception_stem = _Stem()
        self.inception_block_list = nn.LayerList([
            _A(192, 32), _A(256, 64), _A(288, 64), _B(288), _C(768, 128), _C(768, 160), _C(768, 160), _C(768, 192),
            _D(768), _E(1280), _E(2048)])
        if with_pool:
            self.avg_pool = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.dropout = nn.Dropout(p=0.2, mode="downscale_in_infer")
            bound = 2048 ** -0.5
            self.fc = nn.Linear(2048, num_classes, weight_attr=Uniform(-bound, bound))

    def forward(self, x):
        x = self.inception_stem(x)
        for block in self.inception_block_list:
            x = block(x)
        if self.with_pool:
            x = self.avg_pool(x)
        return self.fc(self.dropout(x.reshape([-1, 2048]))) if self.num_classes > 0 else x


def inception_v3(pretrained=False, **kwargs):
    """An InceptionV3."""
    pretrained_refused(pretrained, "inception_v3")
    return InceptionV3(**kwargs)
