"""Pooling, channels-last (ops/pool/cpu/forward.inc): vectors of channels, half types converted a pixel at a time. Maxima and their
gradients are those of NCHW bit for bit; averages are summed in another order."""
import numpy as np
import pytest

import proa
import proa.nn.functional as F

WINDOWS = [dict(kernel_size=3, stride=2, padding=1), dict(kernel_size=2, stride=2), dict(kernel_size=3, stride=1, ceil_mode=True)]
CHANNELS = [3, 8, 16, 45, 257, 600]  # less than a vector, a few with and without a rest, more than the 256 converted at a time


def both(pool, dtype, channels, **window):
    """The pool's outputs in NCHW and in NHWC, both as NCHW."""
    x = np.random.default_rng(channels).standard_normal((2, channels, 9, 11)).astype("float32")
    x[0, 0, 4, 5] = np.nan
    x[1, -1, 0, 0] = -np.inf
    x = proa.to_tensor(x).astype(dtype)
    last = pool(proa.transpose(x, [0, 2, 3, 1]), data_format="NHWC", **window)
    return (y.astype("float32").numpy() for y in (pool(x, data_format="NCHW", **window), proa.transpose(last, [0, 3, 1, 2])))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("window", range(len(WINDOWS)))
def test_maxima(dtype, channels, window):
    first, last = both(F.max_pool2d, dtype, channels, **WINDOWS[window])
    assert first.tobytes() == last.tobytes()


@pytest.mark.parametrize("dtype,ulp,least", [("float16", 2**-10, 1e-3), ("bfloat16", 2**-7, 1e-3), ("float32", 2**-22, 1), ("float64", 2**-22, 1)])
@pytest.mark.parametrize("channels", CHANNELS)
def test_averages(dtype, ulp, least, channels):
    for pool, window in ((F.avg_pool2d, WINDOWS[0]), (F.adaptive_avg_pool2d, {"output_size": 1})):
        first, last = both(pool, dtype, channels, **window)
        finite = np.isfinite(first) & np.isfinite(last)
        assert np.array_equal(first[~finite], last[~finite], equal_nan=True)
        first, last = first[finite], last[finite]
        assert np.all(np.abs(first - last) <= ulp * np.maximum(np.abs(first), least))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("window", range(len(WINDOWS)))
def test_gradients_of_maxima(dtype, channels, window):
    rng = np.random.default_rng(channels)
    x = rng.integers(-3, 4, (2, channels, 9, 11)).astype(dtype)  # of equal ones the first counts

    def gradient(order, fmt):
        t = proa.to_tensor(np.ascontiguousarray(x.transpose(order)), stop_gradient=False)
        y = F.max_pool2d(t, data_format=fmt, **WINDOWS[window])
        scale = np.arange(y.size, dtype=dtype).reshape(proa.transpose(y, np.argsort(order).tolist()).shape)
        (y * proa.to_tensor(np.ascontiguousarray(scale.transpose(order)))).sum().backward()
        return t.grad.numpy().transpose(np.argsort(order))
    np.testing.assert_array_equal(gradient((0, 1, 2, 3), "NCHW"), gradient((0, 2, 3, 1), "NHWC"))
