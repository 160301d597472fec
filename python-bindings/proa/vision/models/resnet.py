"""ResNet (He et al., 2015), ResNeXt (Xie et al., 2016) and Wide ResNet (Zagoruyko and Komodakis, 2016)."""
from ... import nn
from ...tensor import flatten
from ._parts import pretrained_refused

_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


class BasicBlock(nn.Layer):
    """Two 3×3 convolutions and the way past them."""
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1,
                 norm_layer=None):
        super().__init__()
        if dilation > 1:
            raise NotImplementedError(f"BasicBlock: dilation must be 1, got {dilation}")
        norm = norm_layer or nn.BatchNorm2D
        self.conv1 = nn.Conv2D(inplanes, planes, 3, padding=1, stride=stride, bias_attr=False)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2D(planes, planes, 3, padding=1, bias_attr=False)
        self.bn2 = norm(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        past = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + past)


class BottleneckBlock(nn.Layer):
    """A 3×3 convolution between two 1×1 ones, and the way past them."""
    expansion = 4

    def __init__(self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1,
                 norm_layer=None):
        super().__init__()
        norm = norm_layer or nn.BatchNorm2D
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = nn.Conv2D(inplanes, width, 1, bias_attr=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2D(width, width, 3, padding=dilation, stride=stride, groups=groups,
                               dilation=dilation, bias_attr=False)
        self.bn2 = norm(width)
        self.conv3 = nn.Conv2D(width, planes * self.expansion, 1, bias_attr=False)
        self.bn3 = norm(planes * self.expansion)
        self.relu = nn.ReLU()
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        past = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + past)


class ResNet(nn.Layer):
    """A stem, four stages of blocks, a pooling (with_pool) and a linear layer (num_classes > 0)."""

    def __init__(self, block, depth=50, width=64, num_classes=1000, with_pool=True, groups=1):
        super().__init__()
        if depth not in _BLOCKS:
            raise ValueError(f"ResNet: depth must be one of {list(_BLOCKS)}, got {depth!r}")
        self.groups = groups
        self.base_width = width
        self.num_classes = num_classes
        self.with_pool = with_pool
        self._norm_layer = nn.BatchNorm2D
        self.inplanes = 64
        self.dilation = 1
        self.conv1 = nn.Conv2D(3, 64, kernel_size=7, stride=2, padding=3, bias_attr=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2D(kernel_size=3, stride=2, padding=1)
        for k, count in enumerate(_BLOCKS[depth]):
            setattr(self, f"layer{k + 1}", self._make_layer(block, 64 << k, count, stride=2 if k else 1))
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((1, 1))
        if num_classes > 0:
            self.fc = nn.Linear(512 * block.expansion, num_classes)

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        downsample, out = None, planes * block.expansion
        if stride != 1 or self.inplanes != out:
            downsample = nn.Sequential(nn.Conv2D(self.inplanes, out, 1, stride=stride, bias_attr=False),
                                       self._norm_layer(out))
        layers = []
        for k in range(blocks):
            first = k == 0
            layers.append(block(self.inplanes, planes, stride if first else 1, downsample if first else None,
                                self.groups, self.base_width, norm_layer=self._norm_layer))
            self.inplanes = out
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        if self.with_pool:
            x = self.avgpool(x)
        return self.fc(flatten(x, 1)) if self.num_classes > 0 else x


def _maker(name, block, depth, doc, **fixed):
    def make(pretrained=False, **kwargs):
        pretrained_refused(pretrained, name)
        return ResNet(block, depth, **{**kwargs, **fixed})
    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    return make


resnet18 = _maker("resnet18", BasicBlock, 18, "A ResNet with 18 layers.")
resnet34 = _maker("resnet34", BasicBlock, 34, "A ResNet with 34 layers.")
resnet50 = _maker("resnet50", BottleneckBlock, 50, "A ResNet with 50 layers.")
resnet101 = _maker("resnet101", BottleneckBlock, 101, "A ResNet with 101 layers.")
resnet152 = _maker("resnet152", BottleneckBlock, 152, "A ResNet with 152 layers.")
for _depth in (50, 101, 152):
    for _groups in (32, 64):
        _name = f"resnext{_depth}_{_groups}x4d"
        globals()[_name] = _maker(_name, BottleneckBlock, _depth,
                                  f"A ResNeXt with {_depth} layers, {_groups} groups of 4.", groups=_groups, width=4)
wide_resnet50_2 = _maker("wide_resnet50_2", BottleneckBlock, 50, "A ResNet of 50 layers, twice as wide.", width=128)
wide_resnet101_2 = _maker("wide_resnet101_2", BottleneckBlock, 101, "A ResNet of 101 layers, twice as wide.",
                          width=128)
