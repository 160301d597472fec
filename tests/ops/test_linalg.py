"""Linear algebra where there is nothing to compare with: matrices that are singular, not finite, or of numbers whose
squares overflow or vanish; small ones (portable kernels) and large ones (LAPACK's, where the build has them)."""
import numpy as np
import pytest

import proa as paddle
from proa import _core

la = paddle.linalg
SIZES = [3, 40]


@pytest.fixture(params=["cpu", "openblas,cpu"], autouse=True)
def backend(request):
    _core.set_flag("backends", request.param)
    yield request.param
    _core.set_flag("backends", "onednn,openblas,cpu")


def square(n):
    return np.random.RandomState(5).standard_normal((n, n))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["svd", "eigh", "eigvalsh", "eig", "eigvals", "matrix_rank", "pinv", "cond"])
def test_values_of_what_is_not_finite_are_refused(name, value, n, capfd):
    a = square(n)
    a[1, 2] = a[2, 1] = value
    with pytest.raises(ValueError, match="NaN or infinity"):
        getattr(la, name)(paddle.to_tensor(a))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("size", [1e200, 1e-200, 1.0])
def test_very_large_and_small_numbers(size, n):
    a = square(n) * size
    s = a + a.T
    u, sigma, vh = (t.numpy() for t in la.svd(paddle.to_tensor(a)))
    assert np.abs((u * (sigma / size)) @ vh - a / size).max() < 1e-12
    w, v = (t.numpy() for t in la.eigh(paddle.to_tensor(s)))
    assert np.abs((v * (w / size)) @ v.T - s / size).max() < 1e-11
    w, v = (t.numpy() for t in la.eig(paddle.to_tensor(a)))
    assert np.abs((a / size) @ v - v * (w / size)).max() < 1e-11
    q, r = (t.numpy() for t in la.qr(paddle.to_tensor(a)))
    assert np.abs(q @ (r / size) - a / size).max() < 1e-12
    assert np.abs((la.inv(paddle.to_tensor(a)).numpy() * size) @ (a / size) - np.eye(n)).max() < 1e-9


@pytest.mark.parametrize("n", SIZES)
def test_singular_systems_are_refused_and_name_the_matrix(n):
    batch = np.stack([np.eye(n), np.ones((n, n)), np.eye(n)])
    for call in (la.inv, lambda x: la.solve(x, x), lambda x: la.matrix_power(x, -2)):
        with pytest.raises(ValueError, match="singular.*matrix 1"):
            call(paddle.to_tensor(batch))
    with pytest.raises(ValueError, match="not positive definite: matrix 1"):
        la.cholesky(paddle.to_tensor(np.stack([np.eye(n), -np.eye(n)])))


@pytest.mark.parametrize("n", SIZES)
def test_repeated_values_have_finite_gradients(n):
    """A function that does not see which vectors belong to equal values has a gradient there."""
    x = paddle.to_tensor(np.eye(n), stop_gradient=False)
    w, v = la.eigh(x)
    paddle.matmul(v * w, v, transpose_y=True).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    y = paddle.to_tensor(np.eye(n), stop_gradient=False)
    la.svd(y)[1].sum().backward()
    assert np.allclose(y.grad.numpy(), np.eye(n))


@pytest.mark.parametrize("n", SIZES)
def test_deficient_matrices_have_complete_bases(n):
    a = np.outer(np.arange(n + 2.0), np.ones(n))
    u, s, vh = (t.numpy() for t in la.svd(paddle.to_tensor(a), full_matrices=True))
    assert u.shape == (n + 2, n + 2) and np.abs(u.T @ u - np.eye(n + 2)).max() < 1e-12
    assert np.abs(vh @ vh.T - np.eye(n)).max() < 1e-12 and s[1] < 1e-12 * s[0]
    zero = la.svd(paddle.zeros([n, n + 1], dtype="float64"), full_matrices=True)
    assert np.abs(zero[0].numpy() @ zero[0].numpy().T - np.eye(n)).max() < 1e-12
    assert np.abs(zero[2].numpy() @ zero[2].numpy().T - np.eye(n + 1)).max() < 1e-12
    assert int(la.matrix_rank(paddle.to_tensor(a))) == 1


def test_singular_determinants_have_no_gradient_and_no_error():
    x = paddle.to_tensor(np.stack([np.ones((3, 3)), 2 * np.eye(3)]), stop_gradient=False)
    la.det(x).sum().backward()
    assert np.allclose(x.grad.numpy(), np.stack([np.zeros((3, 3)), 4 * np.eye(3)]))
    y = paddle.to_tensor(np.stack([np.ones((3, 3)), 2 * np.eye(3)]), stop_gradient=False)
    la.slogdet(y)[1].sum().backward()
    assert np.allclose(y.grad.numpy(), np.stack([np.zeros((3, 3)), 0.5 * np.eye(3)]))


@pytest.mark.parametrize("n", SIZES)
def test_defective_matrices(n):
    """A Jordan block has one eigenvector; what comes back is finite, of length 1, and nearly satisfies A·v = w·v."""
    a = np.eye(n) + np.eye(n, k=1)
    w, v = (t.numpy() for t in la.eig(paddle.to_tensor(a)))
    assert np.allclose(np.linalg.norm(v, axis=0), 1) and np.abs(a @ v - v * w).max() < 1e-12


def test_gradients_that_are_not_there_are_errors():
    x = paddle.to_tensor(square(4)[:, :3], stop_gradient=False)
    for mode in ("complete", "r"):
        out = la.qr(x, mode)
        with pytest.raises(NotImplementedError, match=f"'{mode}' has no gradient"):
            (out if mode == "r" else out[1]).sum().backward()


@pytest.mark.parametrize("shape", [[0, 3, 3], [2, 0, 3, 3]])
def test_empty_batches(shape):
    x = paddle.zeros(shape)
    assert la.inv(x).shape == shape and la.det(x).shape == shape[:-2] and la.svd(x)[1].shape == shape[:-1]
    assert la.solve(x, paddle.zeros([3, 2])).shape == shape[:-1] + [2] and la.eig(x)[0].shape == shape[:-1]
    assert la.slogdet(x).shape == [2] + shape[:-2] and la.matrix_rank(x).shape == shape[:-2]


@pytest.mark.parametrize("shape", [(5, 3), (3, 3), (3, 5)])
@pytest.mark.parametrize("name", ["qr", "svd", "eigh", "lu"])
def test_outputs_that_are_not_used_have_gradients_of_zero(name, shape):
    """The rules are told which outputs got none; real Paddle's backward ends the process there."""
    a = np.random.RandomState(3).standard_normal(shape)
    if name == "eigh":
        a = a @ a.T

    def gradients(used, others):
        x = paddle.to_tensor(a, stop_gradient=False)
        outs = la.lu_unpack(*la.lu(x))[1:] if name == "lu" else getattr(la, name)(x)
        total = (outs[used].abs() * outs[used]).sum() if name == "lu" else outs[used].abs().sum()
        if others:
            total = total + sum(0.0 * out.sum() for k, out in enumerate(outs) if k != used)
        total.backward()
        return x.grad.numpy()
    for used in range({"svd": 3}.get(name, 2)):
        assert np.allclose(gradients(used, False), gradients(used, True), atol=1e-12)


@pytest.mark.parametrize("shape", [(300, 6, 6), (64, 40, 40), (9, 33, 50)])
def test_a_batch_is_its_matrices_one_by_one(shape):
    """Batches are spread over threads: parts of them, and errors, must be those of the whole."""
    a = np.random.RandomState(2).standard_normal(shape)
    functions = [la.svd, la.qr, lambda x: la.lu(x, get_infos=True), la.matrix_rank, lambda x: la.lstsq(x, x[..., :2])]
    if shape[-1] == shape[-2]:
        functions += [la.inv, la.eigh, la.eig, la.eigvals, la.eigvalsh, lambda x: la.matrix_power(x, 3)]
    for function in functions:
        whole = function(paddle.to_tensor(a))
        for i in (0, shape[0] // 2, shape[0] - 1):
            one = function(paddle.to_tensor(a[i:i + 1]))
            for w, o in zip(*[v if isinstance(v, (tuple, list)) else [v] for v in (whole, one)]):
                assert 0 in w.shape or np.allclose(w.numpy()[i], o.numpy()[0], rtol=1e-7, atol=1e-9)
    a[shape[0] - 2] = np.nan
    with pytest.raises(ValueError, match=f"NaN or infinity: matrix {shape[0] - 2}"):
        la.svd(paddle.to_tensor(a))
