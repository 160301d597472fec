"""INT8 products by every backend against sums of integers in NumPy: sizes that fill no tile, windows across edges, signed and
unsigned operands, residuals and results of every dtype; the same bits whatever the number of threads."""
import numpy as np
import pytest

import proa as paddle
from proa import _core


with open("/proc/cpuinfo") as info:
    # Without AVX2 products are summed in float32.
    EXACT = " avx2" in info.read() and int(paddle.get_flags("FLAGS_cpu_level")["FLAGS_cpu_level"]) > 0


@pytest.fixture(params=["onednn,openblas,cpu", "cpu"])
def backends(request):
    """The default ones, and those that run where oneDNN has no instructions for signed bytes."""
    _core.set_flag("backends", request.param)
    yield request.param
    _core.set_flag("backends", "onednn,openblas,cpu")


def integers(rng, low, high, *shape):
    return rng.randint(low, high + 1, shape).astype("int8" if low < 0 else "uint8")


def operand(rng, signed, *shape):
    return integers(rng, -128, 127, *shape) if signed else integers(rng, 0, 127, *shape)


def rounded(x, dtype, high=127):
    return x if dtype == "float32" else np.clip(np.rint(x), 0 if dtype == "uint8" else -128, high)


def agree(call, exact, dtype, high=127):
    """Results in float32 differ by its roundings; integers, where the exact result is near an edge, by a step."""
    results = []
    for threads in (1, 2, 5):
        _core.set_flag("num_threads", str(threads))
        results.append(call().numpy())
    _core.set_flag("num_threads", "0")
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    got, exact = results[0].astype("float64"), rounded(exact, dtype, high)
    assert results[0].dtype == dtype and got.shape == exact.shape
    if dtype == "float32":
        np.testing.assert_allclose(got, exact, rtol=2e-6, atol=2e-5 if EXACT else 2e-4)
    else:
        assert abs(got - exact).max(initial=0) <= 1 and (got != exact).mean() < 2e-3


def tensors(*arrays):
    return [None if a is None else paddle.to_tensor(a) for a in arrays]


def tail(rng, dtype, kind, k, *shape):
    """scale, bias, and a residual of a dtype."""
    n = shape[-1]
    residual = None if kind is None else (rng.randn(*shape) * 9).astype("float32") if kind == "float32" else (
        integers(rng, -128 if kind == "int8" else 0, 127, *shape))
    return (rng.rand(n) / (40 * k ** 0.5) + 1e-4).astype("float32"), rng.randn(n).astype("float32"), residual


KINDS = [("float32", None), ("float32", "float32"), ("int8", "int8"), ("uint8", "uint8")]


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@pytest.mark.parametrize("dtype, residual", KINDS, ids=lambda v: str(v))
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (1, 1280, 100), (5, 7, 15), (6, 64, 16), (33, 129, 49), (47, 3072, 40), (200, 18, 300)])
def test_linear(backends, signed, dtype, residual, m, k, n):
    rng = np.random.RandomState(m + k + n)
    x, w = operand(rng, signed, m, k), integers(rng, -128, 127, k, n)
    scale, bias, more = tail(rng, dtype, residual, k, m, n)
    exact = (x.astype("int64") @ w) * scale.astype("float64") + bias + (0 if more is None else more)
    args, relu, outer = tensors(x, w, scale, bias, more), dtype == "uint8", 1.0 if dtype == "float32" else 0.75
    exact = (np.maximum(exact, 0) if relu else exact) * outer
    agree(lambda: _core.linear_int8(*args, "relu" if relu else "none", outer=outer, high=100, dtype=dtype), exact, dtype, 100)


def convolved(x, w, stride, padding, dilation):
    """Sums of a channels-last convolution, pixel by pixel of the filter."""
    n, h, width, c = x.shape
    out, _, kh, kw = w.shape
    x = np.pad(x.astype("int64"), ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)))
    rows, columns = ((size + 2 * padding[i] - dilation[i] * (taps - 1) - 1) // stride[i] + 1 for i, (size, taps) in
                     enumerate(((h, kh), (width, kw))))
    total = np.zeros((n, rows, columns, out), "int64")
    for i in range(kh):
        for j in range(kw):
            y0, x0 = i * dilation[0], j * dilation[1]
            part = x[:, y0:y0 + stride[0] * (rows - 1) + 1:stride[0], x0:x0 + stride[1] * (columns - 1) + 1:stride[1]]
            total += part @ w[:, :, i, j].astype("int64").T
    return total


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@pytest.mark.parametrize("dtype, residual", KINDS, ids=lambda v: str(v))
@pytest.mark.parametrize("shape, filters, stride, padding, dilation", [
    ((2, 7, 9, 16), (24, 1, 1), (1, 1), (0, 0), (1, 1)), ((1, 9, 8, 5), (7, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((2, 23, 21, 3), (16, 7, 7), (2, 2), (3, 3), (1, 1)), ((1, 12, 15, 8), (33, 3, 2), (2, 3), (2, 1), (2, 3)),
    ((1, 6, 5, 1), (1, 2, 3), (1, 1), (0, 2), (1, 1))], ids=str)
def test_convolution(backends, signed, dtype, residual, shape, filters, stride, padding, dilation):
    rng = np.random.RandomState(sum(shape))
    x, w = operand(rng, signed, *shape), integers(rng, -128, 127, filters[0], shape[3], *filters[1:])
    sums = convolved(x, w, stride, padding, dilation)
    scale, bias, more = tail(rng, dtype, residual, w[0].size, *sums.shape)
    exact = sums * scale.astype("float64") + bias + (0 if more is None else more)
    args, relu = tensors(x, w, scale, bias, more), dtype == "uint8"
    exact = np.clip(exact, 0, 6) * 20 if relu else exact
    agree(lambda: _core.conv2d_int8(*args, list(stride), list(padding), list(dilation), 1, "NHWC", activation="relu6" if relu else
                                    "none", outer=20.0 if relu else 1.0, dtype=dtype), exact, dtype)


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("batch_x, batch_y, m, k, n, transposed", [
    ((), (), 37, 65, 19, (False, False)), ((12,), (12,), 40, 16, 33, (False, True)), ((2, 1), (1, 3), 9, 31, 16, (True, False)),
    ((5,), (), 8, 64, 64, (True, True)), ((3,), (3,), 1, 128, 70, (False, True))], ids=str)
def test_matmul(backends, signed, dtype, batch_x, batch_y, m, k, n, transposed):
    rng = np.random.RandomState(m + k + n)
    x, y = operand(rng, signed, *batch_x, m, k), integers(rng, -128, 127, *batch_y, k, n)
    exact = (x.astype("int64") @ y) * np.float64(np.float32(0.00173))
    x, y = (np.ascontiguousarray(a.swapaxes(-1, -2)) if t else a for a, t in zip((x, y), transposed))
    args = tensors(x, y)
    agree(lambda: _core.matmul_int8(*args, *transposed, scale=0.00173, dtype=dtype), exact, dtype)


@pytest.mark.parametrize("k", [6, 7])
def test_matmul_of_views(backends, k):
    """Operands whose rows or columns are repeated or left out."""
    rng = np.random.RandomState(k)
    x, y, row = (paddle.to_tensor(integers(rng, -128, 127, *shape)) for shape in ((9, 2 * k), (k, 40), (1, 21)))
    for left, right in ((x[:, ::2], y[:, 3:20]), (x[::3, :k], row.expand([k, 21])), (x[:1, :k].expand([5, k]), y)):
        exact = left.numpy().astype("int64") @ right.numpy()
        agree(lambda: _core.matmul_int8(left, right), exact, "float32")


def test_a_weight_that_changes_is_packed_again(backends):
    rng = np.random.RandomState(0)
    x, w = operand(rng, True, 4, 8), paddle.to_tensor(integers(rng, -128, 127, 8, 3))
    args = [paddle.to_tensor(x), w, paddle.to_tensor(np.ones(3, "float32")), None, None]
    for _ in range(2):
        np.testing.assert_array_equal(_core.linear_int8(*args).numpy(), x.astype("int64") @ w.numpy())
        w.set_value(integers(rng, -128, 127, 8, 3))
