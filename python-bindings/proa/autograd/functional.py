"""jacobian and hessian of tensors, vjp and jvp of functions. Matrices are computed row by row, one call of grad per
output element."""
import math

from .. import _core
from .backward_mode import grad


def _list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _derivatives(y, xs, create_graph):
    """d(y)/d(each of xs); None for one that y does not depend on, or that has stop_gradient set."""
    wanted = [] if y.stop_gradient else [x for x in xs if not x.stop_gradient]
    found = iter(grad(y, wanted, retain_graph=True, create_graph=create_graph, allow_unused=True) if wanted else ())
    return [next(found) if wanted and not x.stop_gradient else None for x in xs]


def _rows(y, x, create_graph):
    """d(y elements)/dx: [y.size, x.size]."""
    flat = _core.reshape(y, [-1])
    rows = []
    for i in range(flat.shape[0]):
        one = _core.slice(flat, [0], [i], [i + 1])
        row, = _derivatives(one, [x], create_graph)
        rows.append(_core.reshape(_core.full_like(x, 0.0) if row is None else row, [-1]))
    return _core.stack(rows)


def _jacobian(y, x, batch_axis, create_graph=True):
    if batch_axis is None:
        full = _rows(y, x, create_graph)
        return _core.reshape(full, [s for t in (y, x) if t.ndim for s in [full.shape[0 if t is y else 1]]])
    if batch_axis != 0:
        raise ValueError(f"jacobian: batch_axis must be None or 0, got {batch_axis}")
    batch = y.shape[0]
    columns = _core.reshape(y, [batch, -1])
    parts = []
    for i in range(columns.shape[1]):
        one = _core.slice(columns, [1], [i], [i + 1])
        row, = _derivatives(one, [x], create_graph)
        parts.append(_core.reshape(_core.full_like(x, 0.0) if row is None else row, [batch, -1]))
    return _core.stack(parts, 1)


def jacobian(ys, xs, batch_axis=None):
    """d(ys)/d(xs): [M, N], or [B, M, N] with batch_axis 0; tuples of them where ys or xs are tuples."""
    if batch_axis is not None and batch_axis != 0:
        raise ValueError(f"jacobian: batch_axis must be None or 0, got {batch_axis}")
    ranks = (0, 1) if batch_axis is None else (1, 2)
    for what, one in [("xs", x) for x in _list(xs)] + [("ys", y) for y in _list(ys)]:
        if len(one.shape) not in ranks:
            raise ValueError(f"jacobian: {what} must have {ranks[0]} or {ranks[1]} dims, got shape {list(one.shape)}")
    by_x = [[_jacobian(y, x, batch_axis) for x in _list(xs)] for y in _list(ys)]
    rows = [tuple(row) if isinstance(xs, (list, tuple)) else row[0] for row in by_x]
    return tuple(rows) if isinstance(ys, (list, tuple)) else rows[0]


def hessian(ys, xs, batch_axis=None):
    """The second derivatives of a scalar (or, with batch_axis 0, of one number a row) by xs."""
    if batch_axis is not None and not isinstance(batch_axis, int):
        raise ValueError(f"hessian: batch_axis must be None or 0, got {batch_axis!r}")
    if math.prod(ys.shape if batch_axis is None else ys.shape[1:]) > 1:
        raise ValueError(f"hessian: ys must be one number{'' if batch_axis is None else ' a row'}, got shape {ys.shape}")
    first = _derivatives(ys, _list(xs), True)
    made = []
    for g, of in zip(first, _list(xs)):
        g = _core.full_like(of, 0.0) if g is None else g
        made.append(tuple(_jacobian(g, x, batch_axis) for x in _list(xs)))
    return tuple(made) if isinstance(xs, (list, tuple)) else made[0][0]


def _leaves(xs):
    leaves = []
    for x in _list(xs):
        leaf = x.detach()
        leaf.stop_gradient = False
        leaves.append(leaf)
    return leaves


def _shape_like(value, made):
    return tuple(made) if isinstance(value, (list, tuple)) else made[0]


def _need(who, func, xs, v):
    if not callable(func):
        raise TypeError(f"{who}: func must be a function, got {type(func).__name__}")
    for what, given in (("xs", _list(xs)), ("v", [] if v is None else _list(v))):
        for one in given:
            if not isinstance(one, _core.Tensor):
                raise TypeError(f"{who}: {what} must be a Tensor or a list of Tensors, got {type(one).__name__}")


def vjp(func, xs, v=None):
    """(func(xs), vᵀ · its Jacobian)."""
    _need("vjp", func, xs, v)
    leaves = _leaves(xs)
    ys = func(*leaves)
    made = grad(ys, leaves, None if v is None else _list(v), allow_unused=True)
    made = [_core.full_like(x, 0.0) if g is None else g for g, x in zip(made, leaves)]
    return ys, _shape_like(xs, made)


def jvp(func, xs, v=None):
    """(func(xs), its Jacobian · v), by the transpose of the transpose."""
    _need("jvp", func, xs, v)
    leaves = _leaves(xs)
    ys = func(*leaves)
    seeds = [_core.full_like(y, 1.0) for y in _list(ys)]
    for seed in seeds:
        seed.stop_gradient = False
    pulled = grad(ys, leaves, seeds, create_graph=True, allow_unused=True)
    v = [_core.full_like(x, 1.0) for x in leaves] if v is None else _list(v)
    pairs = [(p, t) for p, t in zip(pulled, v) if p is not None]
    made = grad([p for p, _ in pairs], seeds, [t for _, t in pairs], allow_unused=True)
    made = [_core.full_like(s, 0.0) if g is None else g for g, s in zip(made, seeds)]
    return ys, _shape_like(ys, made)
