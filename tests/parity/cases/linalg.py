"""Factors, systems and spectra. Vectors are compared by what does not depend on their signs or phases."""
import numpy as np
import paddle
from parity import array, case, ints, raised, rand

la = paddle.linalg


def definite(*batch, n=3, dtype="float64"):
    a = rand(*batch, n, n, dtype=dtype)
    return paddle.matmul(a, a, transpose_y=True) + 2.0 * paddle.eye(n).astype(dtype)


def regular(*batch, n=3, dtype="float64"):
    return rand(*batch, n, n, dtype=dtype, low=-0.5, high=0.5) + 1.5 * paddle.eye(n).astype(dtype)


def mt(x):
    n = len(x.shape)
    return paddle.transpose(x, list(range(n - 2)) + [n - 1, n - 2])


# ---- factors and systems ---------------------------------------------------------------------

@case("paddle.cholesky", "paddle.inverse", "paddle.Tensor.cholesky", "paddle.Tensor.inverse",
      tol=1e-4)  # inverses in float32
def factors():
    a = rand(3, 3)
    s = paddle.matmul(a, a, transpose_y=True) + 3 * paddle.eye(3)
    return paddle.cholesky(s), s.cholesky(upper=True), paddle.inverse(s), s.inverse()


@case("paddle.linalg.cholesky", "paddle.linalg.inv", "paddle.linalg.cholesky_solve", "paddle.Tensor.cholesky_solve")
def cholesky_batches():
    s, b = definite(2, 2), rand(3, 2, dtype="float64")
    low, up = la.cholesky(s), la.cholesky(s, upper=True)
    return low, up, la.inv(s), la.cholesky_solve(b, low), b.cholesky_solve(up, upper=True), \
        la.cholesky_solve(rand(2, 2, 3, 1, dtype="float64"), low[0, 0])


@case("paddle.linalg.solve", "paddle.Tensor.solve")
def solve():
    a, b, v = regular(2), rand(3, 4, dtype="float64"), rand(3, dtype="float64")
    return la.solve(a, b), a[0].solve(b), la.solve(a[1], v), la.solve(a, v), la.solve(a, rand(2, 3, dtype="float64")), \
        la.solve(x=a[0], y=rand(2, 3, 1, dtype="float64"))


@case("paddle.linalg.triangular_solve")
def triangular_solve():
    a, b = regular(2), rand(3, 2, dtype="float64")
    f = la.triangular_solve
    with paddle.no_grad():  # Paddle's gradient has numbers on the diagonal, which is not read
        unit = f(a[1], rand(4, 3, 1, dtype="float64"), False, True, True)
    return f(a, b), f(a, b, upper=False), f(a[0], b, transpose=True), f(a, b, False, True), \
        f(a[1], b, unitriangular=True), unit


@case("paddle.linalg.matrix_power", "paddle.Tensor.matrix_power")
def matrix_power():
    a = regular(2)
    return la.matrix_power(a, 3), a.matrix_power(1), la.matrix_power(a, -2), la.matrix_power(a, 6), \
        la.matrix_power(a[0], 2)


@case("paddle.linalg.det", "paddle.linalg.slogdet")
def determinants():
    a = regular(2, 2)
    return la.det(a), la.slogdet(a), la.det(a[0, 0]), la.slogdet(a[1, 0]), la.det(rand(1, 1, dtype="float64"))


@case("paddle.linalg.det", grad=False)
def singular_determinants():
    a = paddle.to_tensor(np.array([[1.0, 2.0], [2.0, 4.0]]))
    return la.det(a), la.slogdet(a), la.det(paddle.zeros([2, 3, 3]))


@case("paddle.linalg.det", "paddle.linalg.slogdet")
def float32_determinants():
    a = regular(4, dtype="float32")
    return la.det(a), la.slogdet(a)


@case("paddle.linalg.lu", "paddle.linalg.lu_unpack", "paddle.Tensor.lu", "paddle.Tensor.lu_unpack", grad=False)
def lu():
    a, wide, tall = rand(2, 3, 3, dtype="float64"), rand(3, 5), rand(2, 2, 4, 2)
    out = [la.lu(a), a.lu(pivot=True), la.lu(wide, get_infos=True), la.lu(tall, True, True),
           la.lu(paddle.ones([3, 3]), get_infos=True)]
    f, pivots = la.lu(tall)
    g, q = la.lu(wide)
    return out + [la.lu_unpack(f, pivots), g.lu_unpack(q), la.lu_unpack(f, pivots, unpack_ludata=False)[0],
                  la.lu_unpack(g, q, True, False)[1:]]


@case("paddle.linalg.lu", "paddle.linalg.lu_unpack")
def lu_gradients():
    a = rand(2, 3, 3, dtype="float64")
    f, pivots = la.lu(a)
    return f, la.lu_unpack(f, pivots)[1:]


@case("paddle.linalg.qr", "paddle.Tensor.qr")
def qr():
    tall, square, wide = rand(2, 5, 3, dtype="float64"), rand(3, 3, dtype="float64"), rand(3, 4, dtype="float64")
    return la.qr(tall), square.qr(), la.qr(wide, mode="reduced"), la.qr(square, "complete")


@case("paddle.linalg.qr", grad=False)
def qr_modes():
    tall, wide = rand(2, 5, 3), rand(3, 5)
    return la.qr(tall, "complete"), la.qr(tall, "r"), la.qr(wide, "r"), la.qr(wide, "complete")


@case("paddle.linalg.lstsq", "paddle.Tensor.lstsq", grad=False)
def lstsq():
    a, b = rand(2, 5, 3, dtype="float64"), rand(2, 5, 2, dtype="float64")
    wide, c = rand(3, 5, dtype="float64"), rand(3, 2, dtype="float64")
    deficient = paddle.ones([4, 3], dtype="float64")
    return la.lstsq(a, b), a.lstsq(b, driver="gels"), la.lstsq(a, b, 1e-6, "gelsd"), \
        la.lstsq(wide, c, driver="gelss"), la.lstsq(wide, c, driver="gelsy"), \
        la.lstsq(deficient, rand(4, 1, dtype="float64"), driver="gelsy"), \
        la.lstsq(deficient, rand(4, 1, dtype="float64"), 1e-6, "gelsd")[:3]


@case("paddle.linalg.cholesky", "paddle.linalg.inv", "paddle.linalg.solve", "paddle.linalg.lstsq", grad=False)
def refused():
    eye, zero = paddle.eye(3), paddle.zeros([3, 3])
    calls = [lambda: la.cholesky(-eye), lambda: la.inv(zero), lambda: la.solve(zero, eye),
             lambda: la.matrix_power(zero, -1), lambda: la.cholesky(paddle.ones([3, 2])),
             lambda: la.inv(paddle.ones([3])), lambda: la.solve(eye, paddle.ones([4, 2])),
             lambda: la.det(paddle.ones([2, 3])),
             lambda: la.eigh(paddle.ones([2, 3])), lambda: la.svd(paddle.ones([3])), lambda: la.qr(eye, "other"),
             lambda: la.lstsq(eye, paddle.ones([4, 2])), lambda: la.lstsq(eye, eye, driver="other"),
             lambda: la.lu(eye, pivot=False), lambda: la.eigvals(paddle.ones([2, 3])),
             lambda: la.matrix_rank(paddle.ones([3])), lambda: la.triangular_solve(eye, paddle.ones([3]))]
    return [raised(f, ValueError, NotImplementedError) for f in calls]


# ---- spectra ------------------------------------------------------------------------------------

@case("paddle.linalg.svd")
def svd():
    outs = []
    for shape in ([4, 4], [2, 5, 3], [3, 5]):
        u, s, vh = la.svd(rand(*shape, dtype="float64"))
        outs += [u.abs(), s, vh.abs(), paddle.matmul(u * s.unsqueeze(-2), vh)]
    return outs


@case("paddle.linalg.svd", grad=False, tol=1e-4)  # vectors in float32
def svd_forms():
    u, s, vh = la.svd(rand(5, 3), full_matrices=True)
    p, q, r = la.svd(rand(2, 3, 4), True)
    return u[:, :3].abs(), u.shape, s, vh.abs(), p.abs(), q, r.shape, r[:, :3].abs()


@case("paddle.linalg.eigh", "paddle.linalg.eigvalsh", "paddle.Tensor.eigvalsh")
def eigh():
    s = definite()
    w, v = la.eigh(s)
    upper, u = la.eigh(s, UPLO="U")
    return w, v.abs(), upper, u.abs(), la.eigvalsh(s), s.eigvalsh(UPLO="U"), \
        paddle.matmul(v * paddle.exp(-w).unsqueeze(-2), v, transpose_y=True)


@case("paddle.linalg.eigh", "paddle.linalg.eigvalsh", grad=False)  # Paddle's gradient of a batch mixes its matrices
def eigh_batches():
    s = definite(2, 2)
    w, v = la.eigh(s)
    return w, v.abs(), la.eigvalsh(s), la.eigvalsh(s, "U")


@case("paddle.linalg.eigh", "paddle.linalg.eigvalsh")
def eigh_complex():
    a = rand(3, 3, dtype="complex128")
    s = a + paddle.conj(paddle.transpose(a, [1, 0]))
    w, v = la.eigh(s)
    return w, v.abs(), la.eigvalsh(s, "U")


@case("paddle.linalg.eigvalsh", grad=False)
def eigvalsh_without_gradient():
    return la.eigvalsh(definite(2, n=4).detach()), la.eigh(rand(3, 3))[0], la.eigh(rand(3, 3), "U")[0]


def in_order(w, *vectors):
    """Eigenvalues by real and imaginary part, and their vectors' sizes."""
    w = w.numpy()
    order = np.lexsort((w.imag.round(4), w.real.round(4)))
    return [w[order]] + [np.abs(v.numpy())[:, order] for v in vectors]


@case("paddle.linalg.eig", "paddle.linalg.eigvals", "paddle.Tensor.eig", "paddle.Tensor.eigvals", grad=False)
def eig():
    a, z = rand(4, 4, dtype="float64"), rand(3, 3, dtype="complex128")
    batch = la.eig(rand(2, 3, 3, dtype="float64"))
    return in_order(*la.eig(a)), in_order(*z.eig()), in_order(la.eigvals(a)), in_order(z.eigvals()), \
        in_order(batch[0][0], batch[1][0]), batch[0].shape, str(la.eig(rand(3, 3))[0].dtype)


@case("paddle.linalg.eig")
def eig_gradients():
    w, v = la.eig(rand(4, 4, dtype="float64"))
    z, u = la.eig(rand(3, 3, dtype="complex128"))
    # sums over all eigenvalues do not depend on their order
    return paddle.sum(w * w * w), paddle.sum(paddle.abs(v) ** 4), paddle.sum(z * z), paddle.sum(paddle.abs(u) ** 4)


@case("paddle.linalg.matrix_rank", grad=False)
def matrix_rank():
    a = paddle.to_tensor(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]]))
    d = paddle.to_tensor(np.array([[[4.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 3.0]]]))
    f = la.matrix_rank
    return f(a), f(rand(2, 3, 4)), f(a.astype("float32")), f(d, tol=2.5), f(d, 2.5, hermitian=True), \
        f(d, paddle.to_tensor(1.5)), f(d, paddle.to_tensor([0.5, 3.5], dtype="float64")), \
        f(paddle.matmul(a, a, transpose_y=True), hermitian=True)


# ---- what is composed ------------------------------------------------------------------------------

@case("paddle.linalg.pinv", "paddle.Tensor.pinv")
def pinv():
    a, s = rand(2, 4, 3, dtype="float64"), definite(n=3)
    return la.pinv(a), rand(2, 4, dtype="float64").pinv(), la.pinv(s, hermitian=True), la.pinv(a, rcond=1e-3)


@case("paddle.linalg.pinv", grad=False)
def pinv_deficient():
    ones = paddle.ones([3, 2], dtype="float64")
    a = rand(3, 3, dtype="complex128")
    return la.pinv(ones, rcond=1e-10), la.pinv(paddle.ones([3, 3], dtype="float64"), 1e-10, True), \
        la.pinv(a + paddle.conj(paddle.transpose(a, [1, 0])), hermitian=True)


@case("paddle.linalg.cond", "paddle.Tensor.cond")
def cond():
    a, inf = regular(2), float("inf")
    return [la.cond(a), a.cond(p="fro"), la.cond(a, "nuc"), la.cond(rand(3, 4, dtype="float64"), 2), la.cond(a, -2)] + \
        [la.cond(a[0], p) for p in (1, -1, inf, -inf)]


@case("paddle.linalg.multi_dot", "paddle.Tensor.multi_dot")
def multi_dot():
    a, b, c = rand(2, 5, dtype="float64"), rand(5, 3, dtype="float64"), rand(3, 4, dtype="float64")
    v, w = rand(5, dtype="float64"), rand(4, dtype="float64")
    return la.multi_dot([a, b]), la.multi_dot([a, b, c]), la.multi_dot([v, b, c]), la.multi_dot([a, b, c, w]), \
        la.multi_dot([v, b, c, w]), paddle.Tensor.multi_dot([a, b, c])


@case("paddle.linalg.cov", "paddle.linalg.corrcoef", "paddle.Tensor.cov", "paddle.Tensor.corrcoef")
def covariance():
    x, v = rand(3, 6, dtype="float64"), rand(5, dtype="float64")
    weights = paddle.to_tensor(np.abs(array(6)) + 0.1)
    return la.cov(x), x.cov(rowvar=False), la.cov(x, ddof=False), la.cov(v), \
        la.cov(x, fweights=ints(6, low=1, high=5)), la.cov(x, aweights=weights), \
        la.cov(x, True, True, ints(6, low=1, high=5), weights), la.corrcoef(x), \
        x.corrcoef(rowvar=False), la.corrcoef(v)


@case("paddle.linalg.norm", "paddle.Tensor.norm")
def norms():
    x, inf = rand(2, 3, 4, dtype="float64"), float("inf")
    return [la.norm(x, p, axis) for p, axis in (("fro", None), ("fro", [0, 1]), (1, None), (4, None), (0, None),
                                                (4, 1), (inf, None), (-inf, None), (inf, 2), ("fro", 1),
                                                (2, [1, 2]))] + \
        [x.norm(keepdim=True), la.norm(x, axis=(1, 2), keepdim=True), la.norm(x, 2, axis=-1, keepdim=True)]


@case("paddle.linalg.householder_product", "paddle.Tensor.householder_product",
      grad=False)  # Paddle's backward refuses what its forward wrote in place
def householder_product():
    return la.householder_product(rand(5, 3, dtype="float64"), rand(3, dtype="float64")), \
        rand(2, 4, 4, dtype="float64").householder_product(rand(2, 3, dtype="float64"))


@case("paddle.linalg.pca_lowrank", "paddle.Tensor.pca_lowrank", grad=False)
def pca_lowrank():
    x = rand(6, 3, dtype="float64")
    u, s, v = la.pca_lowrank(x, q=3)
    a, b, c = x.pca_lowrank(q=3, center=False, niter=3)
    return s, paddle.matmul(u * s, mt(v)), b, paddle.matmul(a * b, mt(c)), u.shape


@case("paddle.cdist", "paddle.Tensor.cdist")
def cdist():
    x, y = rand(2, 4, 3, dtype="float64"), rand(5, 3, dtype="float64")
    return paddle.cdist(x, y), x.cdist(y, p=1.0), paddle.cdist(x[0], y, 4.0), paddle.cdist(x[1], y, float("inf")), \
        paddle.cdist(x, y, compute_mode="use_mm_for_euclid_dist")
