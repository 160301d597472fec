"""Copies that turn planes, as transposes and channels-last images need them (core/copy.c): whole blocks and what is
left beside them, rows shorter than a cache line, of elements of every size."""
import numpy as np
import pytest

import proa as paddle

DTYPES = ["uint8", "float16", "float32", "float64", "complex128"]
SHAPES = [(3, 2000), (2000, 3), (1, 700), (4, 257), (15, 513), (16, 64), (17, 300), (63, 65), (70, 1000), (129, 4),
          (1031, 1037)]


def numbers(shape, dtype):
    values = np.random.RandomState(0).randint(0, 100, shape)
    return (values + 1j * values[::-1] if dtype == "complex128" else values).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_planes(dtype):
    for shape in SHAPES:
        x = numbers(shape, dtype)
        np.testing.assert_array_equal(paddle.to_tensor(x).transpose([1, 0]).clone().numpy(), x.T, f"{shape}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7, 16, 20])
def test_images(dtype, channels):
    """Channels last and back; several images, of an odd number of pixels."""
    x = numbers((3, channels, 31, 37), dtype)
    t = paddle.to_tensor(x)
    last = t.transpose([0, 2, 3, 1]).clone()
    np.testing.assert_array_equal(last.numpy(), x.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(last.transpose([0, 3, 1, 2]).clone().numpy(), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_into_wider_rows(dtype):
    """Rows that are short, but do not lie side by side where they go."""
    x = numbers((3, 700), dtype)
    for width in (4, 5, 300):
        wide = paddle.zeros([700, width], dtype=dtype)
        wide[:, 1:4] = paddle.to_tensor(x).transpose([1, 0])
        expected = np.zeros((700, width), dtype)
        expected[:, 1:4] = x.T
        np.testing.assert_array_equal(wide.numpy(), expected)
