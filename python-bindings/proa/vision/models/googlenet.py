"""GoogLeNet (Szegedy et al., 2014), with its two auxiliary outputs."""
from ... import nn
from ...nn.functional import relu
from ...nn.initializer import Uniform
from ...tensor import concat, flatten
from ._parts import pretrained_refused

# channels in, 1×1, 3×3 reduced, 3×3, 5×5 reduced, 5×5, pooled
_ROWS = {"3a": (192, 64, 96, 128, 16, 32, 32), "3b": (256, 128, 128, 192, 32, 96, 64),
         "4a": (480, 192, 96, 208, 16, 48, 64), "4b": (512, 160, 112, 224, 24, 64, 64),
         "4c": (512, 128, 128, 256, 24, 64, 64), "4d": (512, 112, 144, 288, 32, 64, 64),
         "4e": (528, 256, 160, 320, 32, 128, 128), "5a": (832, 256, 160, 320, 32, 128, 128),
         "5b": (832, 384, 192, 384, 48, 128, 128)}


class _Conv(nn.Layer):
    def __init__(self, channels, out_channels, kernel, stride=1):
        super().__init__()
        self._conv = nn.Conv2D(channels, out_channels, kernel, stride, (kernel - 1) // 2, bias_attr=False)

    def forward(self, x):
        return self._conv(x)


class _Inception(nn.Layer):
    def __init__(self, channels, one, three_in, three, five_in, five, pooled):
        super().__init__()
        self._conv1 = _Conv(channels, one, 1)
        self._conv3r, self._conv3 = _Conv(channels, three_in, 1), _Conv(three_in, three, 3)
        self._conv5r, self._conv5 = _Conv(channels, five_in, 1), _Conv(five_in, five, 5)
        self._pool = nn.MaxPool2D(kernel_size=3, stride=1, padding=1)
        self._convprj = _Conv(channels, pooled, 1)

    def forward(self, x):
        return relu(concat([self._conv1(x), self._conv3(self._conv3r(x)), self._conv5(self._conv5r(x)),
                            self._convprj(self._pool(x))], axis=1))


def _linear(channels, out_channels, spread):
    bound = (3.0 / spread) ** 0.5
    return nn.Linear(channels, out_channels, weight_attr=Uniform(-bound, bound))


class GoogLeNet(nn.Layer):
    """Returns [output, first auxiliary, second auxiliary]."""

    def __init__(self, num_classes=1000, with_pool=True):
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        self._conv = _Conv(3, 64, 7, 2)
        self._pool = nn.MaxPool2D(kernel_size=3, stride=2)
        self._conv_1, self._conv_2 = _Conv(64, 64, 1), _Conv(64, 192, 3)
        for name, row in _ROWS.items():
            setattr(self, f"_ince{name}", _Inception(*row))
        if with_pool:
            self._pool_5 = nn.AdaptiveAvgPool2D(1)
            self._pool_o1, self._pool_o2 = (nn.AvgPool2D(kernel_size=5, stride=3) for _ in range(2))
        if num_classes > 0:
            self._drop = nn.Dropout(p=0.4, mode="downscale_in_infer")
            self._fc_out = _linear(1024, num_classes, 1024)
            for k, channels in ((1, 512), (2, 528)):
                setattr(self, f"_conv_o{k}", _Conv(channels, 128, 1))
                setattr(self, f"_fc_o{k}", _linear(1152, 1024, 2048))
                setattr(self, f"_drop_o{k}", nn.Dropout(p=0.7, mode="downscale_in_infer"))
                setattr(self, f"_out{k}", _linear(1024, num_classes, 1024))

    def forward(self, x):
        x = self._pool(self._conv_2(self._conv_1(self._pool(self._conv(x)))))
        x = self._pool(self._ince3b(self._ince3a(x)))
        first = self._ince4a(x)
        second = self._ince4d(self._ince4c(self._ince4b(first)))
        out = self._ince5b(self._ince5a(self._pool(self._ince4e(second))))
        if self.with_pool:
            out, first, second = self._pool_5(out), self._pool_o1(first), self._pool_o2(second)
        if self.num_classes > 0:
            out = self._fc_out(self._drop(out).squeeze([2, 3]))
            first = self._out1(self._drop_o1(relu(self._fc_o1(flatten(self._conv_o1(first), 1)))))
            # no relu here: as in Paddle, whose weights expect that
            second = self._out2(self._drop_o2(self._fc_o2(flatten(self._conv_o2(second), 1))))
        return [out, first, second]


def googlenet(pretrained=False, **kwargs):
    """A GoogLeNet."""
    pretrained_refused(pretrained, "googlenet")
    return GoogLeNet(**kwargs)
