"""logsumexp along rows, columns and both, of lengths about the blocks of its kernel, against NumPy in float64; sums of kl_div."""
import numpy as np
import pytest

import proa as paddle


def expected(x, axis):
    x = x.astype("float64")
    top = np.where(np.isfinite(x.max(axis, keepdims=True)), x.max(axis, keepdims=True), 0)
    with np.errstate(all="ignore"):
        return np.log(np.exp(x - top).sum(axis)) + top.reshape(np.sum(x, axis).shape)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float64", 1e-14), ("float16", 1e-3), ("bfloat16", 8e-3)])
@pytest.mark.parametrize("shape", [(3, 61, 17), (2, 65, 129), (700, 5), (5, 600), (4, 1, 300), (129, 1)])
def test_logsumexp(shape, dtype, tolerance):
    t = paddle.to_tensor(np.random.RandomState(1).randn(*shape).astype("float32") * 20).astype(dtype)
    x = t.astype("float64").numpy()
    for axis in [*range(len(shape)), (0, len(shape) - 1), tuple(range(len(shape)))]:
        got = paddle.logsumexp(t, list(axis) if isinstance(axis, tuple) else axis).astype("float64").numpy()
        np.testing.assert_allclose(got, expected(x, axis), rtol=tolerance, atol=tolerance, err_msg=f"axis {axis}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_infinities(dtype):
    x = np.random.RandomState(2).randn(70, 20).astype(dtype)
    x[:, 3] = x[4] = -np.inf
    x[5, 6], x[66, 7], x[68, 8] = np.inf, np.nan, -np.inf
    for axis in (0, 1):
        np.testing.assert_allclose(paddle.logsumexp(paddle.to_tensor(x), axis).numpy(), expected(x, axis), rtol=1e-6)


def test_kl_div():
    rng = np.random.RandomState(3)
    x, y = rng.randn(40001).astype("float32"), rng.rand(40001).astype("float32") - 0.1
    with np.errstate(all="ignore"):
        terms = np.where(y > 0, y * (np.log(y) - x), 0).astype("float64")
    for reduction, want in (("sum", terms.sum()), ("mean", terms.mean()), ("batchmean", terms.mean())):
        got = paddle.nn.functional.kl_div(paddle.to_tensor(x), paddle.to_tensor(y), reduction)
        np.testing.assert_allclose(float(got), want, rtol=1e-5)
