"""Kernels that move data, on shapes that reach each of their loops, against NumPy."""
import itertools

import numpy as np
import pytest

import proa as paddle
import proa.nn.functional as F

DTYPES = ["uint8", "float16", "float32", "float64", "complex128"]


def some(*shape, dtype="float32"):
    return np.arange(1, np.prod(shape) + 1).reshape(shape).astype(dtype)


def test_rolls_of_long_rows():
    """Destinations a few bytes ahead of their sources take a copy of their own."""
    x = some(3, 5000)
    for shift in [1, 3, 15, 16, 17, 1024 - 8, -1]:
        np.testing.assert_array_equal(paddle.roll(paddle.to_tensor(x), shift, 1).numpy(), np.roll(x, shift, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pads(mode, dtype):
    names = {"replicate": "edge", "circular": "wrap"}
    values = {"constant_values": 7} if mode == "constant" else {}
    for left, right, top, bottom in itertools.product([0, 1, 4], [0, 3], [0, 2], [0, 4]):
        x = some(2, 3, 5, 6, dtype=dtype)
        want = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)], names.get(mode, mode), **values)
        got = F.pad(paddle.to_tensor(x), [left, right, top, bottom], mode, 7.0)
        np.testing.assert_array_equal(got.numpy(), want)
        last = F.pad(paddle.to_tensor(x.transpose(0, 2, 3, 1).copy()), [left, right, top, bottom], mode, 7.0, "NHWC")
        np.testing.assert_array_equal(last.numpy(), want.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_gradients_of_pads(mode):
    """Of wide rows and of rows shorter than their padding."""
    for width, padding in [(40, [3, 2, 1, 2]), (5, [4, 4, 2, 2]), (5, [-1, 3, -2, 0]), (2, [1, 1, 1, 1])]:
        x = paddle.to_tensor(some(2, 3, 4, width, dtype="float64"), stop_gradient=False)
        out = F.pad(x, padding, mode)
        d_out = some(*out.shape, dtype="float64")
        d_x, = paddle.grad(out, x, paddle.to_tensor(d_out))
        index = F.pad(paddle.to_tensor(some(2, 3, 4, width, dtype="float64")), padding, mode).numpy().astype(int)
        want = np.zeros(1 + 24 * width)
        np.add.at(want, index.ravel(), d_out.ravel())
        np.testing.assert_array_equal(d_x.numpy().ravel(), want[1:])


@pytest.mark.parametrize("dtype", DTYPES[:4])
def test_nearest(dtype):
    for channels, size in itertools.product([1, 2, 3, 4, 5], [(9, 4), (10, 14), (2, 21)]):
        x = some(2, 5, 7, channels).astype(dtype)
        rows, columns = (np.arange(to) * n // to for to, n in zip(size, x.shape[1:3]))
        got = F.interpolate(paddle.to_tensor(x), size, data_format="NHWC")
        np.testing.assert_array_equal(got.numpy(), x[:, rows][:, :, columns])
