"""Layers for test_onnx.py: MODELS maps a name to a function that returns (layer, arrays). They are what people export:
classifiers, transformers, embeddings, recurrent taggers, a U-Net, a detector's head."""
import numpy as np
import proa as paddle
from proa import nn
from proa.nn import functional as F
from proa.vision import models

MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


def images(n, channels, size):
    return np.random.RandomState(5).rand(n, channels, size, size).astype("float32")


def floats(*shape):
    return np.random.RandomState(6).standard_normal(shape).astype("float32")


def words(n, length, high=30):
    return np.random.RandomState(7).randint(1, high, (n, length)).astype("int64")


for name, options, channels, size in (
        ("LeNet", {}, 1, 28), ("resnet18", {}, 3, 32), ("mobilenet_v1", {"scale": 0.25}, 3, 32), ("mobilenet_v2", {"scale": 0.25}, 3, 32),
        ("mobilenet_v3_small", {"scale": 0.5}, 3, 32), ("mobilenet_v3_large", {"scale": 0.35}, 3, 32),
        ("shufflenet_v2_x0_25", {}, 3, 32), ("shufflenet_v2_swish", {}, 3, 32), ("squeezenet1_1", {}, 3, 48),
        ("densenet121", {"num_classes": 10}, 3, 32)):
    MODELS[name] = lambda name=name, options=options, channels=channels, size=size: (
        getattr(models, name)(**options), [images(2, channels, size)])


@model
def vgg():
    from proa.vision.models.vgg import make_layers
    return nn.Sequential(make_layers([8, "M", 16, 16, "M"], batch_norm=True), nn.AdaptiveAvgPool2D(3), nn.Flatten(),
                         nn.Linear(144, 10)), [images(2, 3, 32)]


@model
def transformer_encoder():
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, activation="gelu")
    return nn.TransformerEncoder(layer, 2), [floats(2, 7, 16)]


@model
def transformer():
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.net = nn.Transformer(16, 4, 1, 1, 32)

        def forward(self, source, target):
            return self.net(source, target, tgt_mask=self.net.generate_square_subsequent_mask(5))

    return Net(), [floats(2, 7, 16), floats(2, 5, 16)]


class Bert(nn.Layer):
    """Token, position and segment embeddings, an encoder with a mask from padding, a pooled first token."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places, self.kinds = nn.Embedding(30, 16, padding_idx=0), nn.Embedding(20, 16), nn.Embedding(2, 16)
        self.norm, self.dropout = nn.LayerNorm(16), nn.Dropout(0.1)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, activation="gelu"), 2)
        self.pool = nn.Linear(16, 16)

    def forward(self, tokens, kinds):
        mask = paddle.unsqueeze((tokens == 0).astype("float32") * -1e4, [1, 2])
        places = paddle.cumsum(paddle.ones_like(tokens), axis=1) - 1
        x = self.dropout(self.norm(self.tokens(tokens) + self.places(places) + self.kinds(kinds)))
        x = self.encoder(x, mask)
        pooled = paddle.tanh(self.pool(x[:, 0]))
        return x, F.normalize(pooled, axis=-1)


@model
def bert():
    tokens = words(2, 9)
    tokens[1, 6:] = 0
    return Bert(), [tokens, words(2, 9, 2)]


@model
def vit():
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2D(3, 16, 4, 4)
            self.first = self.create_parameter([1, 1, 16])
            self.places = self.create_parameter([1, 17, 16])
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", normalize_before=True), 2)
            self.head = nn.Linear(16, 5)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose([0, 2, 1])
            first = paddle.expand(self.first, [x.shape[0], -1, -1])
            return self.head(self.encoder(paddle.concat([first, x], axis=1) + self.places)[:, 0])

    return Net(), [images(2, 3, 16)]


def recurrent(kind, **options):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.net = kind(6, 5, **options)

        def forward(self, x):
            return self.net(x)

    return Net(), [floats(3, 7, 6)]


MODELS["lstm"] = lambda: recurrent(nn.LSTM, num_layers=2)
MODELS["lstm_both_ways"] = lambda: recurrent(nn.LSTM, num_layers=2, direction="bidirect")
MODELS["gru"] = lambda: recurrent(nn.GRU)
MODELS["gru_both_ways"] = lambda: recurrent(nn.GRU, num_layers=2, direction="bidirect", time_major=True)
MODELS["simple_rnn"] = lambda: recurrent(nn.SimpleRNN, direction="bidirect")
MODELS["simple_rnn_relu"] = lambda: recurrent(nn.SimpleRNN, activation="relu")


@model
def lstm_lengths():
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.net = nn.LSTM(6, 5, direction="bidirect")

        def forward(self, x, lengths):
            return self.net(x, sequence_length=lengths)[0]

    return Net(), [floats(3, 7, 6), np.array([7, 2, 5], "int64")]


@model
def tagger():
    """CRNN-like: convolutions, columns as steps, a recurrent layer, class scores."""
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(nn.Conv2D(1, 8, 3, padding=1), nn.BatchNorm2D(8), nn.Hardswish(), nn.MaxPool2D([2, 1]))
            self.rnn, self.head = nn.LSTM(64, 12, direction="bidirect"), nn.Linear(24, 7)

        def forward(self, x):
            x = self.features(x)
            x = paddle.transpose(paddle.flatten(x, 1, 2), [0, 2, 1])
            return F.softmax(self.head(self.rnn(x)[0]), axis=2)

    return Net(), [images(2, 1, 16)]


@model
def unet():
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.down1, self.down2 = nn.Conv2D(3, 8, 3, padding=1), nn.Conv2D(8, 16, 3, 2, padding=1)
            self.norm1, self.norm2 = nn.BatchNorm2D(8), nn.GroupNorm(4, 16)
            self.up, self.out = nn.Conv2DTranspose(16, 8, 2, 2), nn.Conv2D(24, 2, 1)

        def forward(self, x):
            a = F.relu(self.norm1(self.down1(x)))
            b = F.leaky_relu(self.norm2(self.down2(a)))
            up = self.up(b)
            wide = F.interpolate(F.adaptive_avg_pool2d(b, 1)[:, :8], size=[16, 16], mode="nearest")
            y = self.out(paddle.concat([a, up, wide], axis=1))
            return F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=True), paddle.argmax(y, axis=1)

    return Net(), [images(2, 3, 16)]


@model
def detector_head():
    """An FPN level: boxes decoded from anchors' offsets, and the best boxes of each image."""
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2D(3, 8, 3, 2, padding=1)
            self.boxes, self.scores = nn.Conv2D(8, 12, 1), nn.Conv2D(8, 15, 1)

        def forward(self, x):
            x = F.silu(self.stem(x))
            boxes = paddle.transpose(self.boxes(x), [0, 2, 3, 1]).reshape([0, -1, 4])
            scores = paddle.transpose(self.scores(x), [0, 2, 3, 1]).reshape([0, -1, 5])
            middle, size = F.sigmoid(boxes[:, :, :2]), paddle.exp(boxes[:, :, 2:])
            boxes = paddle.concat([middle - size / 2, middle + size / 2], axis=-1)
            best, _ = paddle.topk(F.sigmoid(scores).max(axis=-1), 5, axis=1)
            return boxes, best, paddle.clip(boxes, 0.0, 1.0)

    return Net(), [images(2, 3, 16)]


class OpenSizes(nn.Layer):
    """Ops whose form depends on known sizes, for images of any size."""

    def __init__(self):
        super().__init__()
        self.conv, self.groups, self.each = nn.Conv2D(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.InstanceNorm2D(8)
        self.pool, self.mean = nn.MaxPool2D(2, ceil_mode=True), nn.AvgPool2D(3, 2, 1, exclusive=False)

    def forward(self, x):
        y = self.each(self.groups(self.conv(x)))
        z = self.mean(self.pool(y))
        flat = y.flatten(2).transpose([0, 2, 1])
        weights = F.softmax(paddle.matmul(flat, flat, transpose_y=True), axis=-1)
        return (F.interpolate(z, size=x.shape[2:], mode="bilinear"), F.interpolate(z, scale_factor=2, mode="nearest"),
                F.adaptive_avg_pool2d(x, 1).flatten(1), weights.sum(axis=[1, 2]), F.channel_shuffle(y, 2),
                y.reshape([0, 2, 4, *y.shape[2:]]), F.pad(y, [1, 1, 2, 2], mode="reflect"), paddle.flatten(y, 1, 2),
                paddle.flatten(y, 2, 3), F.pixel_shuffle(y, 2), paddle.repeat_interleave(y, 2, axis=1), paddle.roll(y, 1, axis=2),
                paddle.split(y, 2, axis=1)[0], y[:, :, -1], paddle.stack([y, y], axis=0), F.local_response_norm(y, 3),
                paddle.argmax(y, axis=-1), paddle.tile(y, [1, 2, 1, 1]), paddle.mean(y, axis=[2, 3]), paddle.var(y, axis=[2, 3]))
