"""NumPy and SciPy references of linear algebra (factorizations, systems, determinants, eigenvalues, SVD), computed
in double precision; for empty matrices they return NumPy's result. One function per op, named as the op:
tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the
outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np


def wide(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def mirrored(x, lower):
    """The Hermitian matrix (in double precision) whose lower, or else upper, triangle is that of x."""
    x = wide(x)
    half = np.tril(x, -1) if lower else np.triu(x, 1)
    diagonal = np.real(np.einsum("...ii->...i", x))[..., None] * np.eye(x.shape[-1])
    return half + np.conj(np.swapaxes(half, -1, -2)) + diagonal


def cholesky(x, upper):
    out = np.linalg.cholesky(mirrored(x, not upper))
    return np.swapaxes(out, -1, -2) if upper else out


def cholesky_solve(x, y, upper):
    y = np.triu(wide(y)) if upper else np.tril(wide(y))
    other = np.swapaxes(y, -1, -2)
    return np.linalg.solve(other @ y if upper else y @ other, wide(x))


def inverse(x):
    return np.linalg.inv(wide(x))


def solve(x, y):
    vector = y.ndim == 1 or y.shape == x.shape[:-1]
    out = np.linalg.solve(wide(x), wide(y)[..., None] if vector else wide(y))
    return out[..., 0] if vector else out


def triangular_solve(x, y, upper, transpose, unitriangular):
    x = np.triu(wide(x)) if upper else np.tril(wide(x))
    if unitriangular:
        eye = np.eye(x.shape[-1])
        x = x * (1 - eye) + eye
    return np.linalg.solve(np.swapaxes(x, -1, -2) if transpose else x, wide(y))


def matrix_power(x, n):
    return np.linalg.matrix_power(wide(x), n)


def det(x):
    return np.linalg.det(wide(x))


def slogdet(x):
    return np.stack(np.linalg.slogdet(wide(x)))


def each(x, function):
    """Applies function to every matrix of a batch and stacks each of its results."""
    flat = [function(m) for m in wide(x).reshape(-1, *x.shape[-2:])]
    return [np.stack(parts).reshape((*x.shape[:-2], *np.shape(parts[0]))) for parts in zip(*flat)]


def lu_one(x):
    x, pivots, info = x.copy(), [], 0
    for k in range(min(x.shape)):
        p = k + int(np.argmax(np.abs(x[k:, k])))
        pivots.append(p + 1)
        x[[k, p]] = x[[p, k]]
        if x[k, k] == 0:
            info = info or k + 1
            continue
        x[k + 1:, k] /= x[k, k]
        x[k + 1:, k + 1:] -= np.outer(x[k + 1:, k], x[k, k + 1:])
    return x, np.array(pivots, np.int32), np.int32(info)


def lu(x, pivot):
    out, pivots, infos = each(x, lu_one)
    return out, pivots, infos.reshape(x.shape[:-2] or (1,))


def lu_unpack(x, y, unpack_ludata, unpack_pivots):
    m, n = x.shape[-2:]
    k = min(m, n)
    lower, upper = np.tril(x[..., :k], -1) + np.eye(m, k), np.triu(x[..., :k, :])

    def permutation(pivots):
        order = list(range(m))
        for i, p in enumerate(pivots):
            order[i], order[p - 1] = order[p - 1], order[i]
        return np.eye(m)[:, order]
    p = np.stack([permutation(v) for v in y.reshape(-1, k)]).reshape((*x.shape[:-2], m, m))
    none = np.zeros(0)
    return p if unpack_pivots else none, lower if unpack_ludata else none, upper if unpack_ludata else none


def qr(x, mode):
    if mode == "r":
        return np.zeros(0), np.linalg.qr(wide(x), mode="r")
    return tuple(np.linalg.qr(wide(x), mode=mode))


def svd(x, full_matrices):
    return tuple(np.linalg.svd(wide(x), full_matrices=full_matrices))


def eigh(x, UPLO):
    return tuple(np.linalg.eigh(mirrored(x, UPLO == "L")))


def eigvalsh(x, UPLO, is_test):
    values, vectors = np.linalg.eigh(mirrored(x, UPLO == "L"))
    return values, np.zeros(0) if is_test else vectors


def eig(x):
    values, vectors = np.linalg.eig(wide(x))
    return values + 0j, vectors + 0j


def eigvals(x):
    return np.linalg.eigvals(wide(x)) + 0j


def matrix_rank(x, tol_tensor, tol, hermitian, use_default_tol):
    s = np.abs(np.linalg.eigvalsh(wide(x))) if hermitian else np.linalg.svd(wide(x), compute_uv=False)
    limit = np.asarray(tol if tol_tensor is None else tol_tensor, np.float64)
    if use_default_tol:
        limit = s.max(-1) * max(x.shape[-2:]) * np.finfo(x.dtype).eps
    return (s > limit[..., None]).sum(-1).astype(np.int32)


def lstsq(x, y, rcond, driver):
    def one(a, b):
        out, _, rank, s = np.linalg.lstsq(a, b, rcond=rcond if driver != "gels" else 0)
        left = ((a @ out - b) ** 2).sum(0)
        return out, left if a.shape[0] > a.shape[1] else np.zeros(0), np.int32(rank), s
    flat = [one(a, b) for a, b in zip(wide(x).reshape(-1, *x.shape[-2:]), wide(y).reshape(-1, *y.shape[-2:]))]
    batch = x.shape[:-2]
    out, left, rank, s = (np.stack(p).reshape((*batch, *np.shape(p[0]))) for p in zip(*flat))
    return out, left if left.size else np.zeros(0), rank, s


# ---- what does not depend on signs and phases ------------------------------------------------

def pairs(columns, rows, lib):
    """columns[..., i, k] · rows[..., k, j] for every k, as [..., i, k, j]."""
    if lib is np:
        return columns[..., :, :, None] * rows[..., None, :, :]
    return lib.multiply(lib.unsqueeze(columns, [-1]), lib.unsqueeze(rows, [-3]))


def flipped(x, lib):
    order = list(range(len(x.shape)))
    order[-2:] = order[:-3:-1]
    return lib.transpose(x, order)


def svd_invariants(outs, lib):
    u, s, vh = outs
    k = s.shape[-1]
    if u.shape[-1] == k == vh.shape[-2]:
        return [s, pairs(u, vh, lib)]
    first, rest = u[..., :, :k], u[..., :, k:]  # full matrices, compared as arrays only
    below = vh[..., k:, :]
    return [s, pairs(first, vh[..., :k, :], lib), rest @ flipped(rest, lib), flipped(below, lib) @ below]


def eigh_invariants(outs, lib):
    if len(outs) == 1 or len(outs[1].shape) < 2:
        return outs
    return [outs[0], pairs(outs[1], lib.conj(flipped(outs[1], lib)), lib)]


def eig_invariants(outs, lib):
    """Arrays are sorted by eigenvalue; tensors are compared with tensors in the same order, and keep it."""
    if lib is np:
        order = np.lexsort((outs[0].imag.round(3), outs[0].real.round(3)), axis=-1) if outs[0].size else \
            np.zeros(outs[0].shape, int)
        outs = [np.take_along_axis(outs[0], order, -1)] + \
            [np.take_along_axis(v, order[..., None, :], -1) for v in outs[1:]]
    return outs if len(outs) == 1 else eigh_invariants(outs, lib)


INVARIANTS = {"svd": svd_invariants, "eigh": eigh_invariants, "eigvalsh": eigh_invariants, "eig": eig_invariants,
              "eigvals": eig_invariants}
