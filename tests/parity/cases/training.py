"""Whole training runs from the same weights: the losses of every step agree, and so do the outputs at the end."""
import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

from parity import array, case, fill, ints

# Tolerance of all: float32 sums in another order, which a step's update carries into the next step.
TOL = 1e-4


def data(*shape):
    return paddle.to_tensor(array(*shape).astype("float32"))


def train(net, optimizer, loss_of, batches, steps=50):
    """The loss before each step and, in evaluation mode, after the last."""
    losses = []
    net.train()
    for step in range(steps):
        loss = loss_of(net, *batches[step % len(batches)])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
        if isinstance(optimizer._learning_rate, paddle.optimizer.lr.LRScheduler):
            optimizer._learning_rate.step()
    net.eval()
    with paddle.no_grad():
        losses.append(float(loss_of(net, *batches[0])))
    return losses


def classify(net, x, y):
    return F.cross_entropy(net(x), y)


class LeNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(1, 6, 3, stride=1, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(6, 16, 5, stride=1, padding=0), nn.ReLU(), nn.MaxPool2D(2, 2))
        self.fc = nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 16), nn.Linear(16, 10))

    def forward(self, x):
        return self.fc(paddle.flatten(self.features(x), 1))


@case("paddle.nn.Conv2D", "paddle.nn.MaxPool2D", "paddle.nn.Linear", "paddle.nn.ReLU", "paddle.flatten",
      "paddle.nn.functional.cross_entropy", "paddle.optimizer.Adam", grad=False, tol=TOL)
def lenet():
    net = fill(LeNet(), 0.2)
    batches = [(data(8, 1, 16, 16), ints(8, high=10)) for _ in range(3)]
    return train(net, paddle.optimizer.Adam(1e-3, parameters=net.parameters()), classify, batches, 50)


class Block(nn.Layer):
    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2D(inside, outside, 3, stride=stride, padding=1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(outside)
        self.conv2 = nn.Conv2D(outside, outside, 3, padding=1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(outside)
        self.relu = nn.ReLU()
        self.downsample = None
        if stride != 1 or inside != outside:
            self.downsample = nn.Sequential(nn.Conv2D(inside, outside, 1, stride=stride, bias_attr=False),
                                            nn.BatchNorm2D(outside))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


@case("paddle.nn.BatchNorm2D", "paddle.nn.AdaptiveAvgPool2D", "paddle.nn.Flatten", "paddle.nn.CrossEntropyLoss",
      "paddle.optimizer.Momentum", "paddle.optimizer.lr.CosineAnnealingDecay", "paddle.regularizer.L2Decay",
      grad=False, tol=TOL)
def resnet():
    net = fill(nn.Sequential(nn.Conv2D(3, 8, 3, padding=1, bias_attr=False), nn.BatchNorm2D(8), nn.ReLU(), Block(8, 8),
                             Block(8, 16, 2), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(16, 4)), 0.6)
    rate = paddle.optimizer.lr.CosineAnnealingDecay(0.02, 20)
    optimizer = paddle.optimizer.Momentum(rate, 0.9, net.parameters(), weight_decay=paddle.regularizer.L2Decay(1e-4))
    loss = nn.CrossEntropyLoss()
    batches = [(data(8, 3, 12, 12), ints(8, high=4)) for _ in range(2)]
    return train(net, optimizer, lambda n, x, y: loss(n(x), y), batches)


class InvertedResidual(nn.Layer):
    def __init__(self, inside, outside, stride, expand):
        super().__init__()
        hidden = inside * expand
        self.add = stride == 1 and inside == outside
        self.conv = nn.Sequential(
            nn.Conv2D(inside, hidden, 1, bias_attr=False), nn.BatchNorm2D(hidden), nn.ReLU6(),
            nn.Conv2D(hidden, hidden, 3, stride=stride, padding=1, groups=hidden, bias_attr=False),
            nn.BatchNorm2D(hidden), nn.ReLU6(),
            nn.Conv2D(hidden, outside, 1, bias_attr=False), nn.BatchNorm2D(outside))

    def forward(self, x):
        return x + self.conv(x) if self.add else self.conv(x)


@case("paddle.nn.ReLU6", "paddle.optimizer.RMSProp", "paddle.nn.ClipGradByGlobalNorm", "paddle.mean", grad=False,
      tol=TOL)
def mobilenet_v2():
    net = fill(nn.Sequential(InvertedResidual(4, 4, 1, 3), InvertedResidual(4, 6, 2, 3), nn.AdaptiveAvgPool2D(1),
                             nn.Flatten(), nn.Dropout(0.0), nn.Linear(6, 3)), 0.6)
    optimizer = paddle.optimizer.RMSProp(0.002, epsilon=1e-2, momentum=0.5, parameters=net.parameters(),
                                         grad_clip=nn.ClipGradByGlobalNorm(1.0))
    return train(net, optimizer, classify, [(data(8, 4, 10, 10), ints(8, high=3)) for _ in range(2)])


class Sentiment(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 12, num_layers=2, direction="bidirect")
        self.out = nn.Linear(24, 2)

    def forward(self, words, lengths):
        y, (h, c) = self.lstm(self.embedding(words), sequence_length=lengths)
        return self.out(paddle.concat([h[-2], h[-1]], axis=1) + paddle.max(y, axis=1))


@case("paddle.nn.Embedding", "paddle.nn.LSTM", "paddle.concat", "paddle.max", "paddle.optimizer.Adam",
      "paddle.nn.functional.cross_entropy", grad=False, tol=TOL)
def lstm_classifier():
    net = fill(Sentiment(), 0.4)
    batches = [(ints(6, 9, low=1, high=30), ints(6, low=3, high=10), ints(6, high=2)) for _ in range(3)]
    return train(net, paddle.optimizer.Adam(0.01, parameters=net.parameters()),
                 lambda n, words, lengths, y: F.cross_entropy(n(words, lengths), y), batches, 30)


class Translator(nn.Layer):
    def __init__(self, words=20, width=16):
        super().__init__()
        self.source, self.target = nn.Embedding(words, width), nn.Embedding(words, width)
        self.transformer = nn.Transformer(width, 4, 2, 2, 32, dropout=0.0)
        self.out = nn.Linear(width, words)

    def forward(self, source, target):
        mask = self.transformer.generate_square_subsequent_mask(target.shape[1])
        return self.out(self.transformer(self.source(source), self.target(target), tgt_mask=mask))


@case("paddle.nn.Transformer", "paddle.nn.Transformer.generate_square_subsequent_mask", "paddle.optimizer.AdamW",
      "paddle.optimizer.lr.NoamDecay", grad=False, tol=TOL)
def transformer():
    net = fill(Translator(), 0.3)
    optimizer = paddle.optimizer.AdamW(paddle.optimizer.lr.NoamDecay(16, 10, 0.1), parameters=net.parameters(),
                                       weight_decay=0.01, apply_decay_param_fun=lambda name: ".b_" not in name)
    batches = [(ints(4, 7, high=20), ints(4, 6, high=20)) for _ in range(2)]
    return train(net, optimizer, lambda n, s, t: F.cross_entropy(
        n(s, t[:, :-1]).reshape([-1, 20]), t[:, 1:].reshape([-1])), batches)


class GptBlock(nn.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape([b, t, 3, self.heads, c // self.heads]).transpose(
            [2, 0, 3, 1, 4]).unbind(0)
        scores = paddle.matmul(q, k, transpose_y=True) * (c // self.heads) ** -0.5
        hidden = paddle.triu(paddle.full([t, t], -1e9), 1)
        y = paddle.matmul(F.softmax(scores + hidden, axis=-1), v).transpose([0, 2, 1, 3]).reshape([b, t, c])
        x = x + self.proj(y)
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Layer):
    def __init__(self, words=24, width=16, longest=12):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = self.create_parameter([longest, width])
        self.blocks = nn.LayerList([GptBlock(width, 2) for _ in range(2)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.words(tokens) + self.places[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return paddle.matmul(self.norm(x), self.words.weight, transpose_y=True)  # the embedding's own weights


@case("paddle.nn.LayerNorm", "paddle.nn.GELU", "paddle.nn.LayerList", "paddle.triu", "paddle.matmul",
      "paddle.nn.functional.softmax", "paddle.Tensor.unbind", "paddle.optimizer.lr.LinearWarmup", grad=False, tol=TOL)
def gpt():
    net = fill(Gpt(), 0.3)
    optimizer = paddle.optimizer.AdamW(paddle.optimizer.lr.LinearWarmup(0.005, 5, 0.0, 0.005),
                                       parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
    batches = [(ints(4, 11, high=24),) for _ in range(2)]
    losses = train(net, optimizer, lambda n, t: F.cross_entropy(
        n(t[:, :-1]).reshape([-1, 24]), t[:, 1:].flatten()), batches, 30)
    tokens = paddle.to_tensor(np.zeros([1, 1], "int64"))
    for _ in range(8):  # greedy continuation
        tokens = paddle.concat([tokens, net(tokens)[:, -1].argmax(-1, keepdim=True)], axis=1)
    return losses, tokens
