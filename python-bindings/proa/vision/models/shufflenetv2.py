"""ShuffleNet V2 (Ma et al., 2018)."""
from ... import nn
from ...tensor import concat, flatten, split
from ._parts import ConvNormActivation, pretrained_refused

_CHANNELS = {0.25: (24, 24, 48, 96, 512), 0.33: (24, 32, 64, 128, 512), 0.5: (24, 48, 96, 192, 1024),
             1.0: (24, 116, 232, 464, 1024), 1.5: (24, 176, 352, 704, 1024), 2.0: (24, 224, 488, 976, 2048)}
_ACTIVATIONS = {"relu": nn.ReLU, "swish": nn.Swish, None: None}


def _shuffled(x):
    """The channels of the two halves in turn."""
    n, c, h, w = x.shape
    return x.reshape([n, 2, c // 2, h, w]).transpose([0, 2, 1, 3, 4]).reshape([n, c, h, w])


class _Unit(nn.Layer):
    """Half of the channels pass a depthwise block, the other half stays."""

    def __init__(self, channels, act):
        super().__init__()
        half = channels // 2
        self._conv_pw = ConvNormActivation(half, half, 1, activation_layer=act)
        self._conv_dw = ConvNormActivation(half, half, 3, groups=half, activation_layer=None)
        self._conv_linear = ConvNormActivation(half, half, 1, activation_layer=act)

    def forward(self, x):
        kept, x = split(x, 2, axis=1)
        return _shuffled(concat([kept, self._conv_linear(self._conv_dw(self._conv_pw(x)))], axis=1))


class _DownUnit(nn.Layer):
    """Both ways take all channels at half the resolution."""

    def __init__(self, channels, out_channels, act):
        super().__init__()
        half = out_channels // 2
        self._conv_dw_1 = ConvNormActivation(channels, channels, 3, 2, groups=channels, activation_layer=None)
        self._conv_linear_1 = ConvNormActivation(channels, half, 1, activation_layer=act)
        self._conv_pw_2 = ConvNormActivation(channels, half, 1, activation_layer=act)
        self._conv_dw_2 = ConvNormActivation(half, half, 3, 2, groups=half, activation_layer=None)
        self._conv_linear_2 = ConvNormActivation(half, half, 1, activation_layer=act)

    def forward(self, x):
        one = self._conv_linear_1(self._conv_dw_1(x))
        return _shuffled(concat([one, self._conv_linear_2(self._conv_dw_2(self._conv_pw_2(x)))], axis=1))


class ShuffleNetV2(nn.Layer):
    """Three stages of units of 4, 8 and 4; scale is one of 0.25, 0.33, 0.5, 1, 1.5 and 2."""

    def __init__(self, scale=1.0, act="relu", num_classes=1000, with_pool=True):
        super().__init__()
        if scale not in _CHANNELS:
            raise NotImplementedError(f"ShuffleNetV2: scale must be one of {list(_CHANNELS)}, got {scale!r}")
        if act not in _ACTIVATIONS:
            raise RuntimeError(f"ShuffleNetV2: act must be 'relu', 'swish' or None, got {act!r}")
        self.scale, self.num_classes, self.with_pool = scale, num_classes, with_pool
        first, *stages, last = _CHANNELS[scale]
        layer = _ACTIVATIONS[act]
        self._conv1 = ConvNormActivation(3, first, 3, 2, activation_layer=layer)
        self._max_pool = nn.MaxPool2D(kernel_size=3, stride=2, padding=1)
        self._block_list = []
        channels = first
        for stage, (count, out) in enumerate(zip((4, 8, 4), stages), 2):
            for k in range(count):
                unit = _Unit(out, layer) if k else _DownUnit(channels, out, layer)
                self._block_list.append(self.add_sublayer(f"{stage}_{k + 1}", unit))
            channels = out
        self._last_conv = ConvNormActivation(channels, last, 1, activation_layer=layer)
        if with_pool:
            self._pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self._fc = nn.Linear(last, num_classes)

    def forward(self, x):
        x = self._max_pool(self._conv1(x))
        for block in self._block_list:
            x = block(x)
        x = self._last_conv(x)
        if self.with_pool:
            x = self._pool2d_avg(x)
        return self._fc(flatten(x, 1)) if self.num_classes > 0 else x


def _maker(name, scale, act="relu"):
    def make(pretrained=False, **kwargs):
        pretrained_refused(pretrained, name)
        return ShuffleNetV2(scale=scale, act=act, **kwargs)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A ShuffleNetV2 of scale {scale:g}{' with swish' if act == 'swish' else ''}."
    return make


shufflenet_v2_x0_25 = _maker("shufflenet_v2_x0_25", 0.25)
shufflenet_v2_x0_33 = _maker("shufflenet_v2_x0_33", 0.33)
shufflenet_v2_x0_5 = _maker("shufflenet_v2_x0_5", 0.5)
shufflenet_v2_x1_0 = _maker("shufflenet_v2_x1_0", 1.0)
shufflenet_v2_x1_5 = _maker("shufflenet_v2_x1_5", 1.5)
shufflenet_v2_x2_0 = _maker("shufflenet_v2_x2_0", 2.0)
shufflenet_v2_swish = _maker("shufflenet_v2_swish", 1.0, "swish")
