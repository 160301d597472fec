"""NaN and infinity, as docs/python.md says: comparisons keep NaN, and slopes have their limits."""
import numpy as np
import pytest

import proa as paddle

F = paddle.nn.functional
NAN, INF = float("nan"), float("inf")
DTYPES = ["float32", "float64", "float16", "bfloat16"]


def tensor(values, dtype="float32"):
    return paddle.to_tensor(np.asarray(values, "float64").astype("float32")).astype(dtype)


def numbers(t):
    return t.astype("float64").numpy().ravel().tolist()


def same(got, expected):
    np.testing.assert_array_equal(np.asarray(got, "float64"), np.asarray(expected, "float64"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 4, 7, 16, 33, 100])
def test_elementwise_ops_keep_nan(dtype, n):
    """Every length has another tail behind the vectors."""
    x = tensor([NAN] * n, dtype)
    for fn in (F.relu, F.relu6, F.leaky_relu, F.elu, F.selu, F.celu, F.hardtanh, F.hardsigmoid, F.hardswish,
               F.hardshrink, F.softshrink, F.thresholded_relu, F.silu, F.gelu, F.mish,
               lambda t: paddle.clip(t, -1.0, 1.0)):
        assert np.isnan(numbers(fn(x))).all()
    one = tensor([1.0] * n, dtype)
    for fn in (paddle.maximum, paddle.minimum):
        for a, b in ((x, one), (one, x), (x, x), (x, one[:1]), (one[:1], x)):
            assert np.isnan(numbers(fn(a, b))).all()
    for fn in (paddle.fmax, paddle.fmin):
        same(numbers(fn(x, one)), [1.0] * n)
        same(numbers(fn(one, x)), [1.0] * n)
        assert np.isnan(numbers(fn(x, x))).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_and_order_take_nan_as_the_answer(dtype):
    for at in range(3):
        values = [3.0, 1.0, 2.0]
        values[at] = NAN
        x = tensor(values, dtype)
        for fn in (paddle.max, paddle.min, paddle.amax, paddle.amin):
            assert np.isnan(float(fn(x)))
        assert int(paddle.argmax(x)) == int(paddle.argmin(x)) == at
    x = tensor([NAN, 1.0, 3.0, NAN, 2.0], dtype)
    same(numbers(paddle.sort(x)), [1, 2, 3, NAN, NAN])
    same(numbers(paddle.argsort(x)), [1, 4, 2, 0, 3])
    same(numbers(paddle.sort(x, descending=True)), [NAN, NAN, 3, 2, 1])
    same(numbers(paddle.topk(x, 3)[0]), [NAN, NAN, 3])
    same(numbers(paddle.topk(x, 3, largest=False)[0]), [1, 2, 3])


@pytest.mark.parametrize("corners", [False, True])
def test_bicubic_of_float64_is_as_exact_as_double_allows(corners):
    def weight(t):
        t = abs(t)
        return (1.25 * t - 2.25) * t * t + 1 if t <= 1 else ((-0.75 * t + 3.75) * t - 6) * t + 3 if t < 2 else 0.0

    values, n, out = np.random.RandomState(0).randn(5), 5, 7
    matrix = np.zeros((out, n))
    for i in range(out):
        at = i * (n - 1) / (out - 1) if corners else (i + 0.5) * n / out - 0.5
        for k in range(-1, 3):
            matrix[i, min(max(int(np.floor(at)) + k, 0), n - 1)] += weight(at - np.floor(at) - k)
    x = paddle.to_tensor(values.reshape(1, 1, 1, n), stop_gradient=False)
    y = F.interpolate(x, size=[1, out], mode="bicubic", align_corners=corners)
    np.testing.assert_allclose(y.numpy().ravel(), matrix @ values, rtol=0, atol=4e-15)
    (y * paddle.to_tensor(np.arange(out, dtype="float64"))).sum().backward()
    np.testing.assert_allclose(x.grad.numpy().ravel(), np.arange(out) @ matrix, rtol=0, atol=4e-14)


# f, its slope at −infinity and at infinity
SLOPES = [(F.silu, 0, 1), (F.swish, 0, 1), (F.mish, 0, 1), (F.gelu, 0, 1), (lambda x: F.gelu(x, True), 0, 1),
          (F.softplus, 0, 1), (F.log_sigmoid, 1, 0), (F.sigmoid, 0, 0), (F.hardswish, 0, 1), (F.hardsigmoid, 0, 0),
          (F.relu, 0, 1), (F.elu, 0, 1), (F.selu, 0, 1.0507009873554805), (F.celu, 0, 1), (F.softsign, 0, 0),
          (F.tanhshrink, 1, 1), (paddle.tanh, 0, 0), (paddle.atan, 0, 0), (paddle.erf, 0, 0)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("which", range(len(SLOPES)))
def test_slopes_at_infinity_are_their_limits(dtype, which):
    fn, low, high = SLOPES[which]
    for n in (1, 5, 16, 40):
        largest = 6e4 if dtype == "float16" else 1e38
        x = tensor([-INF, -largest, largest, INF] * n, dtype)
        x.stop_gradient = False
        fn(x).sum().backward()
        expected = tensor([low, low, high, high] * n, dtype)
        half = dtype in ("float16", "bfloat16")  # selu's slope comes from its output, which is rounded
        np.testing.assert_allclose(numbers(x.grad), numbers(expected), rtol=1e-2 if half else 1e-3,
                                   atol=1e-2 if half else 1e-7)
