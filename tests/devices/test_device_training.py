"""Whole models train on gpu:0 as on the CPU: digits_cnn, ResNet-18 and an LSTM, eagerly, without the fallback.

Where there is a GPU (PROA_GPU) they have their full size and take 50 steps; otherwise they are small and *emulated*
(docs/cuda.md), for a few steps. Every loss lies within 1e-3 of the CPU's.
"""
import contextlib
import os

import numpy as np
import pytest

from conftest import ROOT
from test_devices import plugin_of
from proa import _core
import proa as paddle
from proa import nn
from proa.vision.models.resnet import BasicBlock

REAL = bool(os.environ.get("PROA_GPU"))
STEPS = 50 if REAL else 4


@contextlib.contextmanager
def on_device(name):
    before = paddle.get_device()
    paddle.set_device(name)
    try:
        yield
    finally:
        paddle.set_device(before)


class Digits(nn.Layer):
    """examples/digits_cnn.c's network."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(1, width, 3, padding=1), nn.BatchNorm2D(width), nn.ReLU(),
            nn.Conv2D(width, width, 3, padding=1), nn.BatchNorm2D(width), nn.ReLU(), nn.MaxPool2D(2),
            nn.Conv2D(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Dropout(0.3),
            nn.Linear(2 * width * 4, 10))

    def forward(self, x):
        return self.body(x)


class ResNet18(nn.Layer):
    """With width 64 the ResNet-18 of paddle.vision."""

    def __init__(self, width, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2D(3, width, 7, stride=2, padding=3, bias_attr=False),
                                  nn.BatchNorm2D(width), nn.ReLU(), nn.MaxPool2D(3, stride=2, padding=1))
        blocks, inside = [], width
        for stage in range(4):
            planes = width << stage
            for i in range(2):
                stride = 2 if stage and i == 0 else 1
                down = None if stride == 1 and inside == planes else nn.Sequential(
                    nn.Conv2D(inside, planes, 1, stride=stride, bias_attr=False), nn.BatchNorm2D(planes))
                blocks.append(BasicBlock(inside, planes, stride, down))
                inside = planes
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2D((1, 1)), nn.Flatten(), nn.Linear(inside, classes))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


class Sentences(nn.Layer):
    """Two layers of LSTM, both directions, dropout between them, over rows of different lengths."""

    def __init__(self, words, width):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, direction="bidirect", dropout=0.2)
        self.head = nn.Linear(2 * width, 5)

    def forward(self, x, lengths):
        out, _ = self.lstm(self.embedding(x), sequence_length=lengths)
        return self.head(out.mean(axis=1))


def digits():
    rows = np.loadtxt(ROOT / "examples/data/digits_train.csv", delimiter=",", skiprows=1, dtype="float32")
    each = 64 if REAL else 8

    def batch(i):
        part = rows[np.arange(i * each, (i + 1) * each) % len(rows)]
        return [part[:, :64].reshape(each, 1, 8, 8) / 16], part[:, 64].astype("int64")
    return Digits(32 if REAL else 4), batch, lambda p: paddle.optimizer.AdamW(
        1e-3, parameters=p, weight_decay=1e-4, grad_clip=nn.ClipGradByGlobalNorm(1.0))


def resnet18():
    # One batch, learned by heart: over new noise at each step training is chaotic, and a change of 1e-6 in one layer's
    # weights moves the CPU's own losses by 1e-2 within 30 steps.
    each = 32 if REAL else 3
    rng = np.random.RandomState(0)
    images, labels = rng.standard_normal((each, 3, 64, 64)).astype("float32"), rng.randint(0, 10, each)
    return ResNet18(64 if REAL else 2), lambda i: ([images], labels), lambda p: paddle.optimizer.Momentum(
        0.001, momentum=0.9, parameters=p, weight_decay=1e-4)


def lstm():
    each, steps, words, width = (32, 40, 1000, 128) if REAL else (3, 5, 20, 6)

    def batch(i):
        rng = np.random.RandomState(i)
        lengths = rng.randint(1, steps + 1, each)
        lengths[0] = steps
        return [rng.randint(0, words, (each, steps)), lengths], rng.randint(0, 5, each)
    return Sentences(words, width), batch, lambda p: paddle.optimizer.Adam(3e-3, parameters=p)


def train(make, device):
    losses = []
    with on_device(device):
        paddle.seed(5)
        model, batch, optimizer = make()
        opt = optimizer(model.parameters())
        for i in range(STEPS):
            inputs, labels = batch(i)
            scores = model(*[paddle.to_tensor(x) for x in inputs])
            loss = nn.functional.cross_entropy(scores, paddle.to_tensor(labels))
            loss.backward()
            opt.step()
            opt.clear_grad()
            losses.append(float(loss))
        places = {str(p.place) for p in model.parameters()}
    assert device == "cpu" or places == {f"Place({device})"}
    return losses


@pytest.mark.parametrize("make", [digits, resnet18, lstm], ids=lambda f: f.__name__)
def test_training_follows_the_cpu(make):
    path = plugin_of("gpu:0")
    if path is None:
        pytest.skip("gpu:0: its plug-in is not built here")
    _core.load_devices(str(path))
    _core.set_flag("device_fallback", "0")
    want, got = train(make, "cpu"), train(make, "gpu:0")
    assert np.all(np.isfinite(want)) and want[0] != want[-1]
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
