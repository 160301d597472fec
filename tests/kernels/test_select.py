"""The few best of long lines, and extremes of rows: shortcuts that compare blocks of numbers must not pass over NaN (the
largest), equals (the first counts) or zeros of either sign."""
import numpy as np
import pytest

import proa as paddle


def lines(n, dtype):
    a = np.random.RandomState(n).randn(6, n)
    a[1] = np.round(a[1])
    a[2, ::7] = a[3] = np.nan
    a[4], a[4, ::3] = 0.0, -0.0
    a[5] = np.arange(n)
    return a.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("n", [130, 3011])
def test_topk_of_long_lines(n, largest, dtype):
    a = lines(n, dtype)
    numbers = np.where(np.isnan(a), np.inf, a)
    order = np.argsort(-numbers if largest else numbers, axis=-1, kind="stable").tolist()
    for k in (1, 10, 32, 33):
        if 4 * k > n:
            continue
        values, places = paddle.topk(paddle.to_tensor(a), k, largest=largest)
        for row in range(len(a)):
            assert places.numpy()[row].tolist() == order[row][:k]
            np.testing.assert_array_equal(values.numpy()[row], a[row][order[row][:k]])


@pytest.mark.parametrize("n", [1, 15, 17, 63, 64, 129, 1000])
def test_extremes_of_rows(n):
    a = lines(n, "float32")
    a[0, n // 2], a[5] = -np.inf, np.inf
    for name in ("max", "min", "argmax", "argmin"):
        found = getattr(paddle, name)(paddle.to_tensor(a), axis=-1).numpy()
        np.testing.assert_array_equal(found, getattr(a, name)(-1))
