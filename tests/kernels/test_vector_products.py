"""Products of matrices and vectors, whole batches of them, against NumPy: strided caches, broadcast vectors, any thread count."""
import numpy as np
import proa as paddle
import pytest
from proa import _core

DEPTHS = (15, 16, 31, 32, 64, 80, 127, 128, 200)


def numbers(*shape):
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype("float32")


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("keys", [1, 3, 70])
def test_queries_by_keys_of_a_cache(depth, keys):
    cache, query = numbers(2, 3, 80, depth), numbers(2, 3, 1, depth)
    seen = paddle.to_tensor(cache)[:, :, :keys]
    want = np.matmul(query.astype("float64"), cache[:, :, :keys].swapaxes(-1, -2))
    np.testing.assert_allclose(_core.matmul(paddle.to_tensor(query), seen, False, True), want, rtol=1e-5, atol=1e-5)
    columns = _core.matmul(seen, paddle.to_tensor(query), False, True)
    np.testing.assert_allclose(columns, want.swapaxes(-1, -2), rtol=1e-5, atol=1e-5)
    one = _core.matmul(paddle.to_tensor(query[:1, :1]), seen, False, True)
    np.testing.assert_allclose(one, np.matmul(query[:1, :1].astype("float64"), cache[:, :, :keys].swapaxes(-1, -2)), rtol=1e-5,
                               atol=1e-5)
    np.testing.assert_allclose(_core.matmul(seen, paddle.to_tensor(query[0, 0, 0])), cache[:, :, :keys] @ query[0, 0, 0], rtol=1e-4,
                               atol=1e-5)


def test_bits_do_not_depend_on_threads():
    cache, query = paddle.to_tensor(numbers(4, 4, 333, 72)), paddle.to_tensor(numbers(4, 4, 1, 72))
    threads, found = _core.get_threads(), []
    try:
        for count in (1, 2, 3):
            _core.set_threads(count)
            found.append(_core.matmul(query, cache, False, True).numpy())
    finally:
        _core.set_threads(threads)
    assert all((bits == found[0]).all() for bits in found)


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("k,n", [(515, 800), (64, 6200), (4099, 97)])
def test_a_few_rows_by_a_large_matrix(rows, transposed, k, n):
    x, matrix, bias = numbers(rows, k), numbers(n, k).T if transposed else numbers(k, n), numbers(n)
    want = x.astype("float64") @ matrix
    y = paddle.to_tensor(np.ascontiguousarray(matrix.T if transposed else matrix))
    got = _core.matmul(paddle.to_tensor(x), y, False, transposed)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    if not transposed:
        np.testing.assert_allclose(_core.linear(paddle.to_tensor(x), y, paddle.to_tensor(bias)), want + bias, rtol=1e-4, atol=1e-4)
        wide = paddle.to_tensor(np.concatenate([matrix, matrix], 1))[:, 3:n + 3]
        np.testing.assert_allclose(_core.matmul(paddle.to_tensor(x), wide), np.roll(want, -3, 1), rtol=1e-4, atol=1e-4)
    tokens = _core.matmul(paddle.to_tensor(x[:, None]), y, False, transposed)
    np.testing.assert_array_equal(tokens[:, 0], got)


def test_bits_of_a_few_rows_do_not_depend_on_threads():
    x, y = paddle.to_tensor(numbers(5, 700)), paddle.to_tensor(numbers(700, 901))
    threads, found = _core.get_threads(), []
    try:
        for count in (1, 2, 3):
            _core.set_threads(count)
            found.append((_core.matmul(x, y).numpy(), _core.matmul(x, y.t().clone(), False, True).numpy()))
    finally:
        _core.set_threads(threads)
    assert all((a == b).all() for bits in found for a, b in zip(bits, found[0]))
