"""Linear algebra (factorizations, systems, determinants, eigenvalues, SVD) in real Paddle. One function per op,
named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors, and saves the
outputs that it returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
import paddle
from paddle import _C_ops

la = paddle.linalg


def cholesky(x, upper):
    return la.cholesky(x, upper)


def cholesky_solve(x, y, upper):
    return la.cholesky_solve(x, y, upper)


def inverse(x):
    return paddle.inverse(x)


def solve(x, y):
    return la.solve(x, y)


def triangular_solve(x, y, upper, transpose, unitriangular):
    return la.triangular_solve(x, y, upper, transpose, unitriangular)


def matrix_power(x, n):
    return la.matrix_power(x, n)


def det(x):
    return la.det(x)


def slogdet(x):
    return la.slogdet(x)


def lu(x, pivot):
    return la.lu(x, pivot, True)


def lu_unpack(x, y, unpack_ludata, unpack_pivots):
    return la.lu_unpack(x, y, unpack_ludata, unpack_pivots)


def qr(x, mode):
    return _C_ops.qr(x, mode)


def svd(x, full_matrices):
    return la.svd(x, full_matrices)


def eigh(x, UPLO):
    return la.eigh(x, UPLO)


def eigvalsh(x, UPLO, is_test):
    return la.eigvalsh(x, UPLO), None


def eig(x):
    return la.eig(x)


def eigvals(x):
    return la.eigvals(x)


def matrix_rank(x, tol_tensor, tol, hermitian, use_default_tol):
    return la.matrix_rank(x, None if use_default_tol else tol if tol_tensor is None else tol_tensor, hermitian)


def lstsq(x, y, rcond, driver):
    out, residuals, rank, s = la.lstsq(x, y, rcond, driver)
    return out, residuals, None if driver == "gels" else rank, None if driver in ("gels", "gelsy") else s
