"""The largest and the least along rows of every length about a vector's: NaN wins, infinities count, NumPy agrees."""
import numpy as np
import pytest

import proa as paddle

LENGTHS = [*range(1, 70), 127, 128, 129, 255, 256, 1000]


def rows(n, what):
    rng = np.random.RandomState(n)
    x = rng.randn(3, n).astype("float32")
    if what == "nan":
        x[1, rng.randint(n)] = np.nan
    elif what == "infinities":
        x[0, rng.randint(n)], x[1, rng.randint(n)] = np.inf, -np.inf
    elif what == "nothing else":
        x[:] = -np.inf
    return x


@pytest.mark.parametrize("what", ["numbers", "nan", "infinities", "nothing else"])
def test_extremes(what):
    for n in LENGTHS:
        x = rows(n, what)
        t = paddle.to_tensor(x)
        for name in ("max", "min", "amax", "amin", "argmax", "argmin"):
            got = getattr(paddle, name)(t, -1).numpy()
            expected = getattr(np, name)(x, -1)
            np.testing.assert_array_equal(got, expected, err_msg=f"{name} of rows of {n}")
