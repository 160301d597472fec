"""Pooling of half types, channels-last: converted a pixel at a time (ops/pool/cpu/forward.inc). Maxima are those of NCHW bit
for bit; averages are summed in another order."""
import numpy as np
import pytest

import proa
import proa.nn.functional as F

WINDOWS = [dict(kernel_size=3, stride=2, padding=1), dict(kernel_size=2, stride=2), dict(kernel_size=3, stride=1, ceil_mode=True)]
CHANNELS = [3, 16, 257, 600]  # less than a vector, one, and more than the 256 that are converted at a time


def both(pool, dtype, channels, **window):
    """The pool's outputs in NCHW and in NHWC, both as NCHW."""
    x = np.random.default_rng(channels).standard_normal((2, channels, 9, 11)).astype("float32")
    x[0, 0, 4, 5] = np.nan
    x[1, -1, 0, 0] = -np.inf
    x = proa.to_tensor(x).astype(dtype)
    last = pool(proa.transpose(x, [0, 2, 3, 1]), data_format="NHWC", **window)
    return (y.astype("float32").numpy() for y in (pool(x, data_format="NCHW", **window), proa.transpose(last, [0, 3, 1, 2])))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("window", range(len(WINDOWS)))
def test_maxima(dtype, channels, window):
    first, last = both(F.max_pool2d, dtype, channels, **WINDOWS[window])
    assert first.tobytes() == last.tobytes()


@pytest.mark.parametrize("dtype,ulp", [("float16", 2**-10), ("bfloat16", 2**-7)])
@pytest.mark.parametrize("channels", CHANNELS)
def test_averages(dtype, ulp, channels):
    for pool, window in ((F.avg_pool2d, WINDOWS[0]), (F.adaptive_avg_pool2d, {"output_size": 1})):
        first, last = both(pool, dtype, channels, **window)
        finite = np.isfinite(first) & np.isfinite(last)
        assert np.array_equal(first[~finite], last[~finite], equal_nan=True)
        first, last = first[finite], last[finite]
        assert np.all(np.abs(first - last) <= ulp * np.maximum(np.abs(first), 1e-3))
