"""Products of few rows and columns with long sums, whose terms are cut into parts: every side transposed or not, bits that no number
of threads above one changes, sums that do not divide, a bias, rows of a larger matrix."""
import numpy as np
import pytest

import proa as paddle

with open("/proc/cpuinfo") as info:
    # Elsewhere than on AVX2 other kernels have them, whose bits may depend on the number of threads.
    CPU, LEVEL = info.read(), int(paddle.get_flags("FLAGS_cpu_level")["FLAGS_cpu_level"])
PARTS = " avx2" in CPU and LEVEL > 0 and (" avx512vl" not in CPU or LEVEL < 2)
SIZES = [(32, 96, 4096), (48, 48, 2051), (63, 127, 514), (100, 40, 1000), (2, 500, 5001), (50, 60, 771), (128, 128, 3000), (64, 64, 16390)]


@pytest.fixture(autouse=True)
def threads():
    yield
    paddle.set_flags({"FLAGS_num_threads": 0, "FLAGS_deterministic": False})


def check(make, expected, terms):
    results = []
    for threads in (1, 4, 5, 9):
        paddle.set_flags({"FLAGS_num_threads": threads})
        paddle.full(expected.shape, float("nan"))  # what memory holds that the result may get
        results.append(make().numpy())
    for got in results:
        np.testing.assert_allclose(got, expected, rtol=0, atol=2 ** -23 * terms ** 0.5 * np.abs(expected).max())
    return results


def operands(m, n, k):
    numbers = np.random.RandomState(m + n)
    return numbers.randn(m, k).astype("float32"), numbers.randn(k, n).astype("float32")


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)], ids=str)
def test_products(sizes, turned):
    m, n, k = sizes
    x, y = operands(m, n, k)
    expected = x.astype("float64") @ y.astype("float64")
    x, y = (paddle.to_tensor(np.ascontiguousarray(v.T) if turn else v) for v, turn in zip((x, y), turned, strict=True))
    results = check(lambda: paddle.matmul(x, y, *turned), expected, k)
    if PARTS and m // 64 + n // 64 < 4:  # the same parts with every team here
        for other in results[2:]:
            np.testing.assert_array_equal(other, results[1])
    paddle.set_flags({"FLAGS_deterministic": True})
    first, *rest = check(lambda: paddle.matmul(x, y, *turned), expected, k)
    for other in rest:
        np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_linear(sizes):
    m, n, k = sizes
    x, w = operands(m, n, k)
    b = np.random.RandomState(1).randn(n).astype("float32")
    expected = x.astype("float64") @ w.astype("float64") + b
    x, w, b = paddle.to_tensor(x), paddle.to_tensor(w), paddle.to_tensor(b)
    check(lambda: paddle.nn.functional.linear(x, w, b), expected, k)


def test_rows_and_columns_of_larger_matrices():
    x, y = operands(80, 90, 3001)
    expected = x[3:50].astype("float64") @ y[:, 5:60].astype("float64")
    x, y = paddle.to_tensor(x), paddle.to_tensor(y)
    check(lambda: paddle.matmul(x[3:50], y[:, 5:60]), expected, 3001)
