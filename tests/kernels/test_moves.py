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


@pytest.mark.parametrize("dtype", DTYPES[1:4])
def test_transposed_operands(dtype):
    x, y = some(150, 130, dtype=dtype) / 3e4, some(130, 150, dtype=dtype) / 2e4
    a, b = paddle.to_tensor(x), paddle.to_tensor(y)
    np.testing.assert_array_equal(paddle.square(a.t()).numpy(), np.square(x.T))
    np.testing.assert_array_equal((a.t() - b).numpy(), x.T - y)
    np.testing.assert_array_equal((a - b.t()).numpy(), x - y.T)
    np.testing.assert_array_equal((a.t() > b).numpy(), x.T > y)
    np.testing.assert_array_equal((a.t() * a.t()).numpy(), (x * x).T)
    np.testing.assert_array_equal((paddle.stack([b, b]) - a.t()).numpy(), np.stack([y, y]) - x.T)
    b.subtract_(a.t())
    np.testing.assert_array_equal(b.numpy(), y - x.T)
    square = some(128, 128, dtype=dtype) / 3e4
    s = paddle.to_tensor(square)
    s.subtract_(s.t())
    np.testing.assert_array_equal(s.numpy(), square - square.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40, 300, 1), (5, 40, 3), (3, 7, 600), (12000,)])
def test_repeats(shape, dtype):
    x = some(*shape, dtype=dtype)
    axis = min(1, len(shape) - 1)
    counts = np.arange(shape[axis]) % 4
    for each, tensor in [(3, 3), (counts, paddle.to_tensor(counts))]:
        got = paddle.repeat_interleave(paddle.to_tensor(x), tensor, axis)
        np.testing.assert_array_equal(got.numpy(), np.repeat(x, each, axis))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
def test_puts(dtype, axis):
    """Indices repeat: the last assignment wins, and sums are whole."""
    shape = [70, 20, 75]
    x, random = some(*shape, dtype="int64") % 7, np.random.RandomState(0)
    for index_type in ["int32", "int64"]:
        index = random.randint(0, shape[axis], shape)
        values = random.randint(0, 9, shape)
        places = list(np.indices(shape))
        places[axis] = index
        for mode in ["assign", "add"]:
            want = x.copy()
            if mode == "add":
                np.add.at(want, tuple(places), values)
            else:
                for k in range(shape[axis]):
                    at = tuple(np.take(p, [k], axis) for p in places)
                    want[at] = np.take(values, [k], axis)
            got = paddle.put_along_axis(*(paddle.to_tensor(v.astype(t)) for v, t in [(x, dtype), (index, index_type),
                                                                                   (values, dtype)]), axis, mode)
            np.testing.assert_array_equal(got.numpy(), want.astype(dtype))
