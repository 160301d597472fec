"""Products of middling size, read where they stand (ops/matmul/cpu/direct.c): every side transposed or not, whole panels and
what is left of them, batches; the same bits whatever the number of threads."""
import numpy as np
import pytest

import proa as paddle

SIZES = [(64, 400, 120), (128, 128, 128), (200, 200, 200), (33, 700, 17), (300, 61, 47), (16, 512, 512), (5, 1000, 900),
         (96, 1024, 40), (64, 4096, 20), (48, 90, 1)]
BATCHES = [(12, 64, 32, 64), (7, 49, 32, 49), (3, 200, 150, 130), (100, 10, 20, 30)]


@pytest.fixture(autouse=True)
def threads():
    """Without AVX-512, oneDNN has some of these products, whose bits may depend on the team unless a flag says no."""
    with open("/proc/cpuinfo") as info:
        own = " avx512vl" in info.read() and int(paddle.get_flags("FLAGS_cpu_level")["FLAGS_cpu_level"]) > 1
    paddle.set_flags({"FLAGS_deterministic": not own})
    yield
    paddle.set_flags({"FLAGS_num_threads": 0, "FLAGS_deterministic": False})


@pytest.mark.parametrize("sizes", SIZES + BATCHES, ids=str)
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)], ids=str)
def test_products(sizes, turned):
    *batch, m, k, n = sizes
    numbers = np.random.RandomState(0)
    x, y = numbers.randn(*batch, m, k).astype("float32"), numbers.randn(*batch, k, n).astype("float32")
    expected = x.astype("float64") @ y.astype("float64")
    x, y = (np.ascontiguousarray(v.swapaxes(-1, -2)) if turn else v for v, turn in zip((x, y), turned))
    x, y = paddle.to_tensor(x), paddle.to_tensor(y)
    results = []
    for threads in (1, 2, 7):
        paddle.set_flags({"FLAGS_num_threads": threads})
        paddle.full(expected.shape, float("nan"))  # what memory holds that the result may get
        results.append(paddle.matmul(x, y, *turned).numpy())
    np.testing.assert_allclose(results[0], expected, rtol=0, atol=2 ** -23 * k ** 0.5 * np.abs(expected).max())
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_linear(sizes):
    m, k, n = sizes
    numbers = np.random.RandomState(1)
    x, w, b = (numbers.randn(*shape).astype("float32") for shape in ((m, k), (k, n), (n,)))
    y = paddle.nn.functional.linear(*(paddle.to_tensor(v) for v in (x, w, b))).numpy()
    expected = x.astype("float64") @ w + b
    np.testing.assert_allclose(y, expected, rtol=0, atol=2 ** -23 * k ** 0.5 * np.abs(expected).max())
