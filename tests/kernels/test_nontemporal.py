"""Outputs that go past the caches (FLAGS_nontemporal_bytes): the same bits as those that do not, whatever their size."""
import numpy as np
import pytest

import proa as paddle
import proa.nn.functional as F


@pytest.fixture(autouse=True)
def flag():
    yield
    paddle.set_flags({"FLAGS_nontemporal_bytes": 0})


def numbers(*shape, seed=0):
    x = paddle.to_tensor(np.asarray(np.random.RandomState(seed).randn(*shape), "float32"))
    x.stop_gradient = False
    return x


def dropped(x):
    paddle.seed(3)
    return F.dropout(x, 0.3)


def classes(rows, n):
    return paddle.to_tensor(np.random.RandomState(5).randint(0, n, rows))


CASES = {
    "add": (lambda x, y: x + y, (37, 129), (37, 129)), "broadcast": (lambda x, y: x * y, (37, 129), (129,)),
    "gelu": (F.gelu, (41, 67)), "silu": (F.silu, (5, 1021)), "relu": (F.relu, (3, 4099)),
    "softmax": (F.softmax, (23, 131)), "log_softmax": (F.log_softmax, (9, 257)),
    "layer_norm": (lambda x: F.layer_norm(x, 200), (70, 200)), "batch_norm": (lambda x: F.batch_norm(
        x, paddle.zeros([5]), paddle.ones([5]), training=True), (4, 5, 9, 31)),
    "cumsum": (lambda x: x.cumsum(-1), (13, 333)), "cast": (lambda x: x.astype("float16").astype("float32"), (7, 555)),
    "transpose": (lambda x: x.transpose([1, 0]).clone(), (130, 99)), "concat": (lambda x, y: paddle.concat([x, y], 1), (9, 70), (9, 131)),
    "gather": (lambda x: paddle.gather(x, classes(50, 19)), (19, 259)), "dropout": (dropped, (31, 517)),
    "embedding": (lambda w: F.embedding(classes(60, 33), w), (33, 128)),
    "cross_entropy": (lambda x: F.cross_entropy(x, classes(21, 300)), (21, 300)),
    "depthwise": (lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 6), (2, 6, 17, 33), (6, 1, 3, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_same_bits(name):
    fn, *shapes = CASES[name]
    results = []
    for least in (1, 1 << 40):
        paddle.set_flags({"FLAGS_nontemporal_bytes": least})
        inputs = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
        out = fn(*inputs)
        (out * numbers(*out.shape, seed=9).detach()).sum().backward()
        results.append([t.numpy() for t in (out, *(x.grad for x in inputs))])
    for past, kept in zip(*results):
        np.testing.assert_array_equal(past, kept)


def test_random_numbers():
    results = []
    for least in (1, 1 << 40):
        paddle.set_flags({"FLAGS_nontemporal_bytes": least})
        paddle.seed(11)
        results.append([paddle.randn([1003]).numpy(), paddle.rand([77, 41]).numpy()])
    for past, kept in zip(*results):
        np.testing.assert_array_equal(past, kept)
