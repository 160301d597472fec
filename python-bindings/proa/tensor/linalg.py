"""Linear algebra that is more than one op: norm, dist, cov, tensordot, pinv, multi_dot, cond, …"""
import math

from .. import _core
from .._asks import asks
from .._errors import of_kind
from ..framework.dims import alike, differ, is_empty, known, least, reshaped, stretches
from ._tools import Tensor, dtype_name, is_number, like, need_elements, need_few_dims, need_one_floating, need_variable, plain_ints, public, twin

__all__ = ["cdist", "cond", "corrcoef", "cov", "dist", "eigvalsh", "householder_product", "lstsq", "lu",
           "matrix_rank", "mm", "multi_dot", "norm", "pca_lowrank", "pinv", "qr", "t", "t_", "tensordot"]

_INF = float("inf")
_OPEN = 1024  # what an unknown length counts as where an order of products is chosen


@asks("input~f2,f4,f8 mat2~f2,f4,f8 static:input[-1] static:input[-1]=mat2[-2] input,mat2>>i4,i8,f4,f8,c8,c16")
def mm(input, mat2, name=None):
    """matmul without transposes."""
    return public.matmul(input, mat2)


def norm(x, p="fro", axis=None, keepdim=False, name=None):
    """The p-norm of x: of all elements, of vectors along an axis, or of matrices along two.

    >>> paddle.norm(paddle.to_tensor([3.0, 4.0])).item()
    5.0
    """
    if isinstance(p, str) and p != "fro":
        raise ValueError(f"norm: the only name for p is 'fro', got {p!r}")
    if not isinstance(p, str) and not is_number(p):
        raise ValueError(f"norm: p must be a number or 'fro', got {type(p).__name__}")
    order = 2.0 if p == "fro" else float(p)
    if axis is None:
        need_elements("norm", x)
        return _core.p_norm(x, order, -1, 1e-12, keepdim, True)
    axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    if not all(isinstance(a, int) for a in axes) or len(axes) not in (1, 2):
        raise ValueError(f"norm: axis must be an int or a list of at most two, got {axis!r}")
    if len(axes) == 1:
        return _core.p_norm(x, order, axes[0], 1e-12, keepdim, False)
    if p == "fro":
        return _core.sqrt(_core.sum(_core.multiply(x, x), axes, None, keepdim))
    size = _core.abs(x)
    if order in (_INF, -_INF):
        return (_core.max if order > 0 else _core.min)(size, axes, keepdim)
    if order == 0:
        raise ValueError("norm: p = 0 needs a single axis")
    return _core.pow(_core.sum(_core.pow(size, order), axes, None, keepdim), 1.0 / order)


@asks("eager:p:number,bool!InvalidArgument x~bf,f2,f4,f8 y~bf,f2,f4,f8 x,y>>f4,f8")
def dist(x, y, p=2, name=None):
    """The p-norm of x - y over all elements."""
    need_one_floating("dist", x, y)
    need_elements("dist", x)
    return _core.p_norm(_core.subtract(x, y), float(p), -1, 1e-12, False, True)


@asks("static:input.shape input~f2,f4,f8,i4,i8")
def t(input, name=None):
    """A matrix transposed; tensors with fewer axes as they are."""
    ndim = len(input.shape)
    if ndim > 2:
        raise ValueError(f"t: input must have at most two axes, got {ndim}; use transpose")
    return input if ndim <= 1 else _core.transpose(input, [1, 0])


t_ = twin(t, "t_")


def _weights(w, count, what):
    if len(w.shape) > 1:
        raise ValueError(f"cov: {what} must have one axis, got {len(w.shape)}")
    if differ(w.shape[0], count):
        raise ValueError(f"cov: {what} must have {count} entries, got {w.shape[0]}")
    if not w.is_symbolic and float(_core.min(w)) < 0:  # a program does not look at values
        raise ValueError(f"cov: {what} must not be negative")


@asks("eager:ddof:number,str,array!InvalidArgument")
def cov(x, rowvar=True, ddof=True, fweights=None, aweights=None, name=None):
    """The covariance matrix of x's rows (columns if not rowvar)."""
    ndim, kind = len(x.shape), dtype_name(x.dtype)
    if ndim not in (1, 2):
        raise ValueError(f"cov: x must have one or two axes, got {ndim}")
    if kind not in ("float32", "float64"):
        raise TypeError(f"cov: x must be float32 or float64, got {kind}")
    rows = _core.reshape(x, [1, -1]) if ndim == 1 else x
    if not rowvar and not alike(rows.shape[0], 1):
        rows = t(rows)
    count, w = rows.shape[1], None
    if fweights is not None:
        _weights(fweights, count, "fweights")
        w = _core.cast(fweights, kind)
        if not w.is_symbolic and not bool(_core.all(_core.equal(w, _core.round(w)))):
            raise ValueError("cov: fweights must be whole numbers")
    if aweights is not None:
        _weights(aweights, count, "aweights")
        aw = _core.cast(aweights, kind)
        w = aw if w is None else _core.multiply(w, aw)
    total = like(count, x) if w is None else _core.sum(w)
    if w is not None and not total.is_symbolic and total.item() == 0:
        raise ValueError("cov: the weights sum to zero")
    weighted = rows if w is None else _core.multiply(rows, w)
    mean = _core.divide(_core.sum(weighted, [1]), total)
    if aweights is not None and ddof:
        spread = _core.divide(_core.sum(_core.multiply(w, aw)), total)
        factor = _core.subtract(total, spread)
    else:
        if hasattr(ddof, "__array__") and not _core.is_capturing():
            ddof = float(_core.to_tensor(ddof))
        if not is_number(ddof):
            raise of_kind(f"cov: argument ddof: expected a number, got {type(ddof).__name__}")
        factor = _core.scale(total, 1, -float(ddof))
    factor = _core.clip(factor, 0.0)
    away = _core.subtract(rows, _core.unsqueeze(mean, [1]))
    other = away if w is None else _core.multiply(away, w)
    return _core.squeeze(_core.divide(_core.matmul(away, other, False, True), factor))


@asks("eager:x>>f4,f8")
def corrcoef(x, rowvar=True, name=None):
    """The matrix of correlation coefficients of x's rows (columns if not rowvar)."""
    c = cov(x, rowvar)
    if not c.ndim:
        return _core.divide(c, c)
    deviation = _core.sqrt(_core.diagonal(c))
    c = _core.divide(_core.divide(c, _core.unsqueeze(deviation, [1])), _core.unsqueeze(deviation, [0]))
    return _core.clip(c, -1.0, 1.0)


@asks("x~f4,f8 y~f4,f8 p:number,bool")
def cdist(x, y, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary", name=None):
    """p-norm distances between all rows of x and all rows of y."""
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"cdist: compute_mode must be one of {modes}, got {compute_mode!r}")
    need_variable(x, "cdist: x")
    need_variable(y, "cdist: y")
    if len(x.shape) < 2 or len(y.shape) < 2 or differ(x.shape[-1], y.shape[-1]) or p < 0:
        raise AssertionError(f"cdist: needs [..., m, d] and [..., n, d] and p >= 0, got {x.shape}, {y.shape}, {p}")
    if x.dtype != y.dtype and not _core.is_capturing():
        y = _core.cast(y, x.dtype)
    rows, columns = x.shape[-2], y.shape[-2]
    if any(alike(n, 0) for n in (rows, columns, x.shape[-1])):
        return _core.full([rows, columns], 0, x.dtype)
    mode = modes.index(compute_mode)
    if p == 2 and (mode == 1 or (mode == 0 and known(rows, columns) and max(rows, columns) > 25)):
        nx = _core.sum(_core.multiply(x, x), [-1], None, True)
        ny = _core.sum(_core.multiply(y, y), [-1], None, True)
        swap = list(range(len(y.shape) - 2)) + [len(y.shape) - 1, len(y.shape) - 2]
        cross = _core.scale(_core.matmul(x, y, False, True), -2)
        return _core.sqrt(_core.clip(_core.add(_core.add(cross, _core.transpose(ny, swap)), nx), 0.0))
    away = _core.subtract(_core.unsqueeze(x, [-2]), _core.unsqueeze(y, [-3]))
    return _core.p_norm(away, float(p), -1, 1e-12, False, False)


@asks("static:axes:int,list,tuple")
def tensordot(x, y, axes=2, name=None):
    """Sums of products over axes of x and y: the last and first n, or those that the lists name.

    >>> paddle.tensordot(paddle.ones([2, 3, 4]), paddle.ones([3, 4, 5]), axes=2).shape
    [2, 5]
    """
    need_variable(x, "tensordot: x")
    need_variable(y, "tensordot: y")
    if _core.is_capturing() and isinstance(axes, (list, tuple)) and any(isinstance(a, Tensor) for a in axes):
        raise TypeError("tensordot: axes must be an int or lists of ints while a program is built, got a Tensor")
    if isinstance(axes, Tensor):
        axes = axes.tolist()
    if isinstance(axes, int):
        if axes < 0:
            raise AssertionError(f"tensordot: axes must not be negative, got {axes}")
        ax, ay = list(range(len(x.shape) - axes, len(x.shape))), list(range(axes))
    elif not axes or isinstance(axes[0], int):
        ax, ay = list(axes), []
    else:
        try:
            ax, ay = plain_ints(axes[0]), plain_ints(axes[1]) if len(axes) > 1 else []
        except ValueError:
            raise TypeError(f"tensordot: axes must be an int or lists of ints, got {axes!r}") from None
    ax, ay = ax + ay[len(ax):], ay + ax[len(ay):]
    for a, t in [*((a, x) for a in ax), *((a, y) for a in ay)]:
        if not -len(t.shape) <= a < len(t.shape):
            raise IndexError(f"tensordot: axes {axes} name axis {a}, where a tensor has {len(t.shape)} dims")
    ax, ay = [a % len(x.shape) for a in ax], [a % len(y.shape) for a in ay]
    for a, b in zip(ax, ay):
        p, q = x.shape[a], y.shape[b]
        if stretches(p, q):
            y = _core.sum(y, [b], None, True)
        elif stretches(q, p):
            x = _core.sum(x, [a], None, True)
        elif differ(p, q):
            raise AssertionError(f"tensordot: axis {a} of x has length {p}, axis {b} of y {q}")
    rx = [a for a in range(len(x.shape)) if a not in ax]
    ry = [b for b in range(len(y.shape)) if b not in ay]
    left, right = _core.transpose(x, rx + ax), _core.transpose(y, ay + ry)
    left = _core.reshape(left, [-1, math.prod(x.shape[a] for a in ax)])
    right = _core.reshape(right, [math.prod(y.shape[b] for b in ay), -1])
    return reshaped(public.matmul(left, right), [x.shape[a] for a in rx] + [y.shape[b] for b in ry])


def multi_dot(x, name=None):
    """The product of a list of matrices, in the cheapest order; the first and last may be vectors."""
    if not isinstance(x, (list, tuple)):
        raise of_kind(f"multi_dot: x must be a list or tuple of Tensors, got {type(x).__name__}")
    if len(x) < 2:
        raise ValueError(f"(InvalidArgument) multi_dot: needs at least two tensors, got {len(x)}")
    first, last = len(x[0].shape) == 1, len(x[-1].shape) == 1
    parts = list(x)
    if first:
        parts[0] = _core.unsqueeze(parts[0], [0])
    if last:
        parts[-1] = _core.unsqueeze(parts[-1], [1])
    sizes = [n if known(n) else _OPEN for n in [p.shape[0] for p in parts] + [parts[-1].shape[1]]]
    n = len(parts)
    cost, cut = {(i, i): 0 for i in range(n)}, {}
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            cost[i, j], cut[i, j] = min((cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                                        for k in range(i, j))

    def product(i, j):
        return parts[i] if i == j else _core.matmul(product(i, cut[i, j]), product(cut[i, j] + 1, j))
    out = product(0, n - 1)
    gone = ([0] if first else []) + ([1] if last else [])
    return _core.squeeze(out, gone) if gone else out


@asks("x.shape eager:x:Tensor!InvalidArgument static:x:Tensor")
def cond(x, p=None, name=None):
    """The condition number of matrices in the norm p (default 2)."""
    if len(x.shape) < 2:
        raise ValueError(f"cond: x must have at least two axes, got {len(x.shape)}")
    p = 2 if p is None else p
    if p not in ("fro", "nuc", 1, -1, 2, -2, _INF, -_INF):
        raise ValueError(f"cond: p must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {p!r}")
    if p in (2, -2):
        if is_empty(x):
            return _core.reshape(x, x.shape[:-2])
        s = _core.svd(x, False)[1]
        high, low = _core.max(s, [-1]), _core.min(s, [-1])
        return _core.divide(high, low) if p == 2 else _core.divide(low, high)
    if differ(x.shape[-1], x.shape[-2]):
        raise ValueError(f"cond: p = {p} needs square matrices, got {x.shape}")
    if is_empty(x):
        return _core.reshape(x, x.shape[:-2])

    def size(m):
        if p == "fro":
            return _core.sqrt(_core.sum(_core.multiply(m, m), [-2, -1]))
        if p == "nuc":
            return _core.sum(_core.svd(m, False)[1], [-1])
        sums = _core.sum(_core.abs(m), [-2] if p in (1, -1) else [-1])
        return (_core.max if p > 0 else _core.min)(sums, [-1])
    return _core.multiply(size(x), size(_core.inverse(x)))


def _swapped(x):
    n = len(x.shape)
    return _core.transpose(x, list(range(n - 2)) + [n - 1, n - 2])


@asks("static:x.dtype x~f4,f8,c8,c16 static:rcond:-list eager:rcond+!PreconditionNotMet")
def pinv(x, rcond=1e-15, hermitian=False, name=None):
    """The pseudo-inverse; singular values below rcond times the greatest count as zero."""
    if hermitian:
        s, u = _core.eigh(x)
        size = _core.abs(s)
    else:
        u, s, vt = _core.svd(x, False)
        size = s
    cutoff = _core.multiply(_core.max(size, [-1], True), _core.cast(_core.to_tensor(rcond, dtype=s.dtype) if hasattr(rcond, "__len__") else like(rcond, s), s.dtype))
    keep = _core.greater_than(size, cutoff)
    safe = _core.where(keep, s, _core.full_like(s, 1))
    back = _core.where(keep, _core.reciprocal(safe), _core.full_like(s, 0))
    if hermitian:
        return _core.matmul(_core.multiply(u, _core.unsqueeze(back, [-2])), _swapped(_core.conj(u)))
    return _core.matmul(_core.multiply(_swapped(vt), _core.unsqueeze(back, [-2])), _swapped(u))


@asks("x.dtype tau.dtype static:x.dtype=f4,f8,c8,c16 x.dtype=tau.dtype!AssertionError x#>=2!AssertionError")
def householder_product(x, tau, name=None):
    """The first n columns of the product of the Householder reflections that geqrf leaves in x and tau."""
    m, n, k = x.shape[-2], x.shape[-1], tau.shape[-1]
    if len(x.shape) != len(tau.shape) + 1 or x.dtype != tau.dtype or known(m, n) and m < n or known(n, k) and n < k:
        raise AssertionError(f"householder_product: x {x.shape} and tau {tau.shape} do not fit")
    lower = _core.tril(x, -1)
    q = _core.eye(m, m, x.dtype)
    for i in range(k):
        v = _core.add(_core.slice(lower, [len(x.shape) - 1], [i], [i + 1]),
                      _core.slice(_core.eye(m, m, x.dtype), [1], [i], [i + 1]))
        step = _core.multiply(_core.matmul(_core.matmul(q, v), _swapped(_core.conj(v))),
                              _core.unsqueeze(_core.slice(tau, [len(tau.shape) - 1], [i], [i + 1]), [-1]))
        q = _core.subtract(q, step)
    return _core.slice(q, [len(q.shape) - 1], [0], [n])


@asks("x:Tensor!ValueError")
def pca_lowrank(x, q=None, center=True, niter=2, name=None):
    """The leading q singular triples (U, S, V) of x, found by random projection."""
    m, n = x.shape[-2:]
    if is_empty(x):
        raise (AssertionError if _core.is_capturing() else of_kind)(f"pca_lowrank: x must have elements, got shape {x.shape}")
    q = least(6, m, n) if q is None else q
    if known(m, n) and not 0 <= q <= min(m, n) or niter < 0:
        raise ValueError(f"pca_lowrank: q must be in [0, {min(m, n)}] and niter not negative, got {q} and {niter}")
    if center:
        x = _core.subtract(x, _core.mean(x, [-2], True))
    tall = not known(m, n) or m >= n
    a = x if tall else _swapped(x)
    basis = _core.qr(_core.matmul(a, _core.gaussian([a.shape[-1], q], 0.0, 1.0, 0, x.dtype)))[0]
    for _step in range(niter):
        basis = _core.qr(_core.matmul(_swapped(a), basis))[0]
        basis = _core.qr(_core.matmul(a, basis))[0]
    u, s, vt = _core.svd(_core.matmul(_swapped(basis), a), False)
    u, v = _core.matmul(basis, u), _swapped(vt)
    return (u, s, v) if tall else (v, s, u)


@asks("x~f4,f8 static:mode:str")
def qr(x, mode="reduced", name=None):
    """x = q·r with orthonormal columns in q; r alone for mode 'r'."""
    if mode is None and not _core.is_capturing():
        raise of_kind("qr: mode must be a str, got NoneType")
    q, r = _core.qr(x, mode)
    return r if mode == "r" else (q, r)


def lu(x, pivot=True, get_infos=False, name=None):
    """The LU factors of x in one matrix, the pivots (from 1), and what lu says about zero pivots if asked."""
    if isinstance(x, Tensor) and known(*x.shape) and 0 in x.shape[-2:]:
        raise of_kind(f"lu: x must have matrices with elements, got shape {x.shape}")
    need_few_dims("lu", x=x)
    out, pivots, infos = _core.lu(x, pivot)
    return (out, pivots, infos) if get_infos else (out, pivots)


@asks("static:x.shape static:x#>=2 static:x[-1]=x[-2] static:UPLO=L|U x~f4,f8,c8,c16")
def eigvalsh(x, UPLO="L", name=None):
    """The eigenvalues of Hermitian matrices, of which one triangle is read, ascending."""
    return _core.eigvalsh(x, UPLO, x.stop_gradient)[0]


@asks("static:hermitian:bool static:tol:float,None,Tensor")
def matrix_rank(x, tol=None, hermitian=False, name=None):
    """The number of singular values (absolute eigenvalues if hermitian) that exceed tol."""
    if isinstance(tol, bool) and _core.is_capturing():
        raise TypeError("matrix_rank: tol must be a float or a Tensor, got bool")
    if isinstance(tol, Tensor):
        tol = tol if dtype_name(tol.dtype) == dtype_name(x.dtype) else _core.cast(tol, x.dtype)
        return _core.matrix_rank(x, tol, hermitian=hermitian, use_default_tol=False)
    return _core.matrix_rank(x, None, 0.0 if tol is None else float(tol), hermitian, tol is None)


def lstsq(x, y, rcond=None, driver=None, name=None):
    """(solution, residuals, rank, singular values) of the least squares problem x·solution = y."""
    if driver not in (None, "gels", "gelss", "gelsd", "gelsy"):
        raise ValueError(f"lstsq: driver must be 'gels', 'gelss', 'gelsd', 'gelsy' or None, got {driver!r}")
    kind = dtype_name(x.dtype)
    if kind not in ("float32", "float64") or dtype_name(y.dtype) != kind:
        raise ValueError(f"lstsq: x and y must both be float32 or float64, got {kind} and {dtype_name(y.dtype)}")
    if len(x.shape) < 2 or len(y.shape) < 2 or differ(x.shape[-2], y.shape[-2]):
        raise ValueError(f"lstsq: x and y must be matrices of as many rows, got {x.shape} and {y.shape}")
    driver = "gelsy" if driver is None else driver
    if rcond is None:
        rcond = (1e-7 if kind == "float32" else 1e-15) * max(x.shape[-2:])
    solution, residuals, rank, values = _core.lstsq(x, y, rcond, driver)
    if driver == "gels":
        rank = _core.full([0], 0, "int32")
    if driver in ("gels", "gelsy"):
        values = _core.full([0], 0, kind)
    return solution, residuals, rank, values
