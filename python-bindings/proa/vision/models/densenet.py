"""DenseNet (Huang et al., 2016)."""
from ... import nn
from ...nn.initializer import Uniform
from ...tensor import concat, flatten
from ._parts import pretrained_refused

# channels of the stem, growth, layers of the four blocks
_DEPTHS = {121: (64, 32, (6, 12, 24, 16)), 161: (96, 48, (6, 12, 36, 24)), 169: (64, 32, (6, 12, 32, 32)),
           201: (64, 32, (6, 12, 48, 32)), 264: (64, 32, (6, 12, 64, 48))}


class _NormConv(nn.Layer):
    def __init__(self, channels, out_channels, kernel, padding=0):
        super().__init__()
        self._batch_norm = nn.BatchNorm(channels, act="relu")
        self._conv = nn.Conv2D(channels, out_channels, kernel, padding=padding, bias_attr=False)

    def forward(self, x):
        return self._conv(self._batch_norm(x))


class _Stem(nn.Layer):
    def __init__(self, out_channels):
        super().__init__()
        self._conv = nn.Conv2D(3, out_channels, 7, stride=2, padding=3, bias_attr=False)
        self._batch_norm = nn.BatchNorm(out_channels, act="relu")

    def forward(self, x):
        return self._batch_norm(self._conv(x))


class _DenseLayer(nn.Layer):
    def __init__(self, channels, growth, bn_size, dropout):
        super().__init__()
        self.dropout = dropout
        self.bn_ac_func1 = _NormConv(channels, bn_size * growth, 1)
        self.bn_ac_func2 = _NormConv(bn_size * growth, growth, 3, 1)
        if dropout:
            self.dropout_func = nn.Dropout(p=dropout, mode="downscale_in_infer")

    def forward(self, x):
        grown = self.bn_ac_func2(self.bn_ac_func1(x))
        if self.dropout:
            grown = self.dropout_func(grown)
        return concat([x, grown], axis=1)


class _DenseBlock(nn.Layer):
    def __init__(self, channels, count, bn_size, growth, dropout, name):
        super().__init__()
        self.dense_layer_func = [
            self.add_sublayer(f"{name}_{k + 1}", _DenseLayer(channels + k * growth, growth, bn_size, dropout))
            for k in range(count)]

    def forward(self, x):
        for layer in self.dense_layer_func:
            x = layer(x)
        return x


class _Transition(nn.Layer):
    def __init__(self, channels):
        super().__init__()
        self.conv_ac_func = _NormConv(channels, channels // 2, 1)
        self.pool2d_avg = nn.AvgPool2D(kernel_size=2, stride=2)

    def forward(self, x):
        return self.pool2d_avg(self.conv_ac_func(x))


class DenseNet(nn.Layer):
    """Four blocks in which each layer sees all before it; layers is 121, 161, 169, 201 or 264."""

    def __init__(self, layers=121, bn_size=4, dropout=0.0, num_classes=1000, with_pool=True):
        super().__init__()
        if layers not in _DEPTHS:
            raise AssertionError(f"DenseNet: layers must be one of {list(_DEPTHS)}, got {layers!r}")
        self.num_classes, self.with_pool = num_classes, with_pool
        channels, growth, self.block_config = _DEPTHS[layers]
        self.conv1_func = _Stem(channels)
        self.pool2d_max = nn.MaxPool2D(kernel_size=3, stride=2, padding=1)
        self._stages = []
        for k, count in enumerate(self.block_config, 2):
            block = _DenseBlock(channels, count, bn_size, growth, dropout, f"conv{k}")
            self._stages.append(self.add_sublayer(f"db_conv_{k}", block))
            channels += count * growth
            if k < 5:
                self._stages.append(self.add_sublayer(f"tr_conv{k}_blk", _Transition(channels)))
                channels //= 2
        self.batch_norm = nn.BatchNorm(channels, act="relu")
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            bound = channels ** -0.5
            self.out = nn.Linear(channels, num_classes, weight_attr=Uniform(-bound, bound))

    def forward(self, x):
        x = self.pool2d_max(self.conv1_func(x))
        for stage in self._stages:
            x = stage(x)
        x = self.batch_norm(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.out(flatten(x, 1)) if self.num_classes > 0 else x


def _maker(layers):
    name = f"densenet{layers}"

    def make(pretrained=False, **kwargs):
        pretrained_refused(pretrained, name)
        return DenseNet(layers=layers, **kwargs)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A DenseNet with {layers} layers."
    return make


densenet121, densenet161, densenet169, densenet201, densenet264 = map(_maker, _DEPTHS)
