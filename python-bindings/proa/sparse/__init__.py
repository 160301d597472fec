"""paddle.sparse: tensors of which few elements are stored, in COO or CSR form, and functions of them."""
import builtins
import math

from .._asks import asks
from .. import _core
from .._errors import need_attribute, of_kind
from ..framework.dtype import to_dtype
from ..tensor._tools import INTEGER, Tensor, dtype_name
from .tensor import (SparseCooTensor, SparseCsrTensor, SparseTensor, coo, from_flat, host, like, need_coo, need_sparse,
                     summed)

__all__ = ["abs", "add", "addmm", "asin", "asinh", "atan", "atanh", "cast", "coalesce", "deg2rad", "divide", "expm1",
           "is_same_shape", "isnan", "log1p", "masked_matmul", "matmul", "multiply", "mv", "neg", "pca_lowrank", "pow",
           "rad2deg", "reshape", "sin", "sinh", "slice", "sparse_coo_tensor", "sparse_csr_tensor", "sqrt", "square",
           "subtract", "sum", "tan", "tanh", "transpose"]


def __getattr__(name):
    if name != "nn":
        raise AttributeError(f"module 'paddle.sparse' has no attribute {name!r}")
    import importlib
    module = globals()["nn"] = importlib.import_module(".nn", __name__)
    return module


def __dir__():
    return sorted({*globals(), "nn"})


# ---- making ----------------------------------------------------------------------------------


def _values(values, dtype, stop_gradient):
    """A dense tensor of values: one that wants a gradient keeps its history, another becomes a leaf of its own."""
    made = values if isinstance(values, Tensor) else _core.to_tensor(values)
    made = made if dtype is None else _core.cast(made, dtype)
    if not made.stop_gradient:
        return made
    made = made.detach()
    made.stop_gradient = stop_gradient
    return made


def _need_ints(who, what, array):
    if hasattr(array, "dtype") and dtype_name(array.dtype) not in INTEGER:
        raise TypeError(f"{who}: {what} must be integers, got {dtype_name(array.dtype)}")


def _need_place(who, place):
    if not (place is None or isinstance(place, (str, _core.Place))):
        raise ValueError(f"{who}: place must be a place or a text such as 'cpu', got {type(place).__name__}")


def sparse_coo_tensor(indices, values, shape=None, dtype=None, place=None, stop_gradient=True):
    """A tensor of values at coordinates indices [sparse dims, n]; shape is by default the smallest that holds them.

    >>> t = paddle.sparse.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0])
    >>> t.to_dense().tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    _need_place("sparse_coo_tensor", place)
    _need_ints("sparse_coo_tensor", "indices", indices)
    who, at, values = "sparse_coo_tensor", host(indices), _values(values, dtype, stop_gradient)
    if at.ndim != 2:
        raise ValueError(f"{who}: indices must have two dims, got shape {list(at.shape)}")
    if not values.shape or values.shape[0] != at.shape[1]:
        raise ValueError(f"{who}: values must have a row an entry of indices, {at.shape[1]}, got shape {values.shape}")
    least = [int(n) + 1 for n in at.max(1)] if at.size else [0] * len(at)
    least += list(values.shape[1:])
    if shape is None:
        if not at.size:
            raise ValueError(f"{who}: shape must be given where there are no values")
        shape = least
    shape = [int(n) for n in (shape.tolist() if isinstance(shape, Tensor) else shape)]
    if len(shape) != len(least) or shape[len(at):] != least[len(at):] or any(a < b for a, b in zip(shape, least)):
        raise ValueError(f"{who}: shape must be at least {least}, got {shape}")
    if at.size and at.min() < 0:
        raise ValueError(f"{who}: indices must not be negative, got {int(at.min())}")
    return SparseCooTensor(at, values, shape)


def sparse_csr_tensor(crows, cols, values, shape, dtype=None, place=None, stop_gradient=True):
    """A matrix, or a batch of them, row by row: crows says where each row's entries begin, cols their columns.

    >>> t = paddle.sparse.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 3.0], [2, 2])
    >>> t.to_dense().tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    _need_place("sparse_csr_tensor", place)
    _need_ints("sparse_csr_tensor", "crows", crows)
    _need_ints("sparse_csr_tensor", "cols", cols)
    who, starts, at, values = "sparse_csr_tensor", host(crows), host(cols), _values(values, dtype, stop_gradient)
    shape = [int(n) for n in shape]
    if starts.ndim != 1 or at.ndim != 1 or len(values.shape) != 1:
        raise ValueError(f"{who}: crows, cols and values must have one dim")
    if len(at) != values.shape[0]:
        raise ValueError(f"{who}: cols must have an entry a value, {values.shape[0]}, got {len(at)}")
    if len(shape) not in (2, 3):
        raise ValueError(f"{who}: shape must have 2 or 3 entries, got {shape}")
    need = math.prod(shape[:-2]) * (shape[-2] + 1)
    if len(starts) != need:
        raise ValueError(f"{who}: crows must have {need} entries for shape {shape}, got {len(starts)}")
    if len(at) and not 0 <= at.min() <= at.max() < shape[-1]:
        raise ValueError(f"{who}: cols must be in [0, {shape[-1]}), got {int(at.min())} to {int(at.max())}")
    if len(at) != int(starts.reshape(-1, shape[-2] + 1)[:, -1].sum()):
        raise ValueError(f"{who}: crows must end with the number of values, {len(at)}")
    return SparseCsrTensor(starts, at, values, shape)


# ---- of each value ---------------------------------------------------------------------------


def _of_values(name, text):
    op = getattr(_core, name)

    def function(x, name=None):
        return need_sparse(function.__name__, "x", x).with_values(op(x.values()))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text} of the stored values."
    return function


for _name, _text in (("abs", "The absolute value"), ("asin", "The arc sine"), ("asinh", "The inverse hyperbolic sine"),
                     ("atan", "The arc tangent"), ("atanh", "The inverse hyperbolic tangent"), ("expm1", "exp(x) − 1"),
                     ("isnan", "Whether they are NaN"), ("log1p", "log(1 + x)"), ("neg", "The opposite"),
                     ("sin", "The sine"), ("sinh", "The hyperbolic sine"), ("sqrt", "The square root"),
                     ("square", "The square"), ("tan", "The tangent"), ("tanh", "The hyperbolic tangent")):
    globals()[_name] = _of_values(_name, _text)
del _name, _text


def pow(x, factor, name=None):
    """The stored values to a power."""
    factor = float(factor)
    return need_sparse("pow", "x", x).with_values(_core.pow(x.values(), factor))


def _scaled(who, x, by):
    need_attribute(who, "dtype", x=x)
    values = need_sparse(who, "x", x).values()
    values = values if "float" in dtype_name(values.dtype) else _core.cast(values, "float32")
    return x.with_values(_core.scale(values, by))


def deg2rad(x, name=None):
    """The stored angles in radians."""
    return _scaled("deg2rad", x, math.pi / 180)


def rad2deg(x, name=None):
    """The stored angles in degrees."""
    return _scaled("rad2deg", x, 180 / math.pi)


@asks("index_dtype?")
def cast(x, index_dtype=None, value_dtype=None, name=None):
    """x with values of another dtype. Coordinates are int64 whatever index_dtype says."""
    _, value_dtype = (None if dtype is None else to_dtype(dtype) for dtype in (index_dtype, value_dtype))
    values = need_sparse("cast", "x", x).values()
    return x.with_values(values if value_dtype is None else _core.cast(values, value_dtype))


# ---- of two tensors --------------------------------------------------------------------------


def _same_form(who, x, y):
    need_sparse(who, "x", x)
    if type(need_sparse(who, "y", y)) is not type(x):
        raise TypeError(f"{who}: x and y must be in one form, both COO or both CSR")
    if x.shape != y.shape:
        raise ValueError(f"{who}: x and y must have one shape, got {x.shape} and {y.shape}")


def _combined(who, x, y, op, everywhere=False):
    """op of the two where either is stored, or of all elements."""
    import numpy as np
    need_attribute(who, "dtype", x=x, y=y)
    _same_form(who, x, y)
    a, b = coo(x), coo(y)
    if a.sparse_dim != b.sparse_dim:
        raise ValueError(f"{who}: x and y must have as many sparse dims, got {a.sparse_dim} and {b.sparse_dim}")
    p, q = a.flat(), b.flat()
    whole = np.arange(math.prod(a.sparse_shape)) if everywhere else np.union1d(p, q)
    left, right = (summed(t.values(), np.searchsorted(whole, at), len(whole)) for t, at in ((a, p), (b, q)))
    return like(x, from_flat(whole, op(left, right), a.sparse_shape))


def add(x, y, name=None):
    """x + y, both COO or both CSR.

    >>> t = paddle.sparse.sparse_coo_tensor([[0]], [1.0], [2])
    >>> paddle.sparse.add(t, t).to_dense().tolist()
    [2.0, 0.0]
    """
    return _combined("add", x, y, _core.add)


def subtract(x, y, name=None):
    """x − y, both COO or both CSR."""
    return _combined("subtract", x, y, _core.subtract)


def multiply(x, y, name=None):
    """x · y element by element, both COO or both CSR; y may be a number."""
    need_attribute("multiply", "dtype", x=x)
    if isinstance(y, (int, float)):
        return need_sparse("multiply", "x", x).with_values(_core.scale(x.values(), y))
    return _combined("multiply", x, y, _core.multiply)


def divide(x, y, name=None):
    """x / y element by element: of all elements, as most quotients are 0 / 0. y may be a number."""
    need_attribute("divide", "dtype", x=x)
    if isinstance(y, (int, float)):
        return need_sparse("divide", "x", x).with_values(_core.divide(x.values(), _core.full([], y, x.dtype)))
    return _combined("divide", x, y, _core.divide, True)


@asks("eager:x.shape!InvalidArgument eager:y.shape!InvalidArgument")
def is_same_shape(x, y):
    """Whether two tensors, sparse or dense, have one shape."""
    return list(x.shape) == list(y.shape)


# ---- products --------------------------------------------------------------------------------


def _matrices(who, name, t):
    """Batch size, rows and columns of a matrix or a batch of them."""
    shape = list(t.shape)
    if len(shape) not in (2, 3):
        raise ValueError(f"{who}: {name} must have 2 or 3 dims, got shape {shape}")
    return (math.prod(shape[:-2]), *shape[-2:])


def _entries(t):
    """Of each entry of COO matrices: which matrix, row, column."""
    import numpy as np
    at = t._indices
    return (np.zeros_like(at[0]), at[0], at[1]) if len(at) == 2 else tuple(at)


def _times_dense(x, y):
    """A sparse matrix, or a batch, times a dense one: every entry sends its multiple of a row of y."""
    batch, rows, inner = _matrices("matmul", "x", x)
    other, height, columns = _matrices("matmul", "y", y)
    if (batch, inner) != (other, height):
        raise ValueError(f"matmul: shapes {x.shape} and {list(y.shape)} do not fit")
    t = coo(x)
    of, row, column = _entries(t)
    src, dst = _core.to_tensor(of * inner + column), _core.to_tensor(of * rows + row)
    flat = _core.reshape(y, [batch * inner, columns])
    out = _core.graph_send_ue_recv(flat, _core.reshape(t.values(), [-1, 1]), src, dst, "MUL", "SUM", [batch * rows])[0]
    return _core.reshape(out, [*x.shape[:-1], columns])


def _times_sparse(x, y):
    """Every entry (i, k) of x meets row k of y; what lands on one place adds up."""
    import numpy as np
    a, b = coo(x), coo(y).coalesce()
    batch, rows, inner = _matrices("matmul", "x", x)
    other, height, columns = _matrices("matmul", "y", y)
    if (batch, inner) != (other, height):
        raise ValueError(f"matmul: shapes {x.shape} and {y.shape} do not fit")
    (of, row, k), (of_b, row_b, column) = _entries(a), _entries(b)
    starts = np.searchsorted(of_b * inner + row_b, np.arange(batch * inner + 1))
    first, counts = starts[of * inner + k], starts[of * inner + k + 1] - starts[of * inner + k]
    left = np.repeat(np.arange(len(k)), counts)
    right = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    values = _core.multiply(_core.gather(a.values(), _core.to_tensor(left)),
                            _core.gather(b.values(), _core.to_tensor(right)))
    flat = (of[left] * rows + row[left]) * columns + column[right]
    return like(x, from_flat(flat, values, (*x.shape[:-1], columns)))


@asks("eager:x.shape!InvalidArgument eager:y.shape!InvalidArgument")
def matmul(x, y, name=None):
    """The product of sparse x with a dense y, dense, or with a sparse one, sparse.

    >>> t = paddle.sparse.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 3.0], [2, 2])
    >>> paddle.sparse.matmul(t, paddle.ones([2, 1])).tolist()
    [[2.0], [3.0]]
    """
    need_sparse("matmul", "x", x)
    return _times_sparse(x, y) if isinstance(y, SparseTensor) else _times_dense(x, y)


@asks("eager:x.shape!InvalidArgument eager:y.shape!InvalidArgument")
def masked_matmul(x, y, mask, name=None):
    """The elements of the product of dense x and y where mask, a sparse tensor, has entries."""
    t = coo(need_sparse("masked_matmul", "mask", mask))
    batch, rows, inner = _matrices("masked_matmul", "x", x)
    columns = y.shape[-1]
    if list(y.shape) != [*x.shape[:-2], inner, columns] or mask.shape != [*x.shape[:-1], columns]:
        raise ValueError(f"masked_matmul: shapes {list(x.shape)} and {list(y.shape)} and mask {mask.shape} do not fit")
    of, row, column = _entries(t)
    order = list(range(len(y.shape) - 2)) + [len(y.shape) - 1, len(y.shape) - 2]
    left = _core.reshape(x, [batch * rows, inner])
    right = _core.reshape(_core.transpose(y, order), [batch * columns, inner])
    pairs = _core.multiply(_core.gather(left, _core.to_tensor(of * rows + row)),
                           _core.gather(right, _core.to_tensor(of * columns + column)))
    return mask.with_values(_core.sum(pairs, [1]))


@asks("eager:x.shape!InvalidArgument eager:vec:Tensor!InvalidArgument")
def mv(x, vec, name=None):
    """The product of a sparse matrix and a dense vector."""
    if len(need_sparse("mv", "x", x).shape) != 2 or len(vec.shape) != 1:
        raise ValueError(f"mv: x must have two dims and vec one, got shapes {list(x.shape)} and {list(vec.shape)}")
    return _core.squeeze(matmul(x, _core.unsqueeze(vec, [1])), [1])


@asks("eager:input.shape!InvalidArgument eager:x.shape!InvalidArgument eager:y.shape!InvalidArgument")
def addmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    """beta·input + alpha·(x times y), where x is sparse."""
    product = matmul(x, y)
    if isinstance(product, SparseTensor):
        return add(multiply(need_sparse("addmm", "input", input), beta), multiply(product, alpha))
    return _core.add(_core.scale(input, beta), _core.scale(product, alpha))


def pca_lowrank(x, q=None, center=True, niter=2, name=None):
    """paddle.linalg.pca_lowrank of the dense tensor."""
    from ..tensor.linalg import pca_lowrank as dense
    if isinstance(x, Tensor) and not isinstance(x, SparseTensor):
        raise ValueError("pca_lowrank: x must be a sparse Tensor, got a dense one; paddle.linalg.pca_lowrank takes it")
    return dense(need_sparse("pca_lowrank", "x", x).to_dense(), q, center, niter)


# ---- moving entries --------------------------------------------------------------------------


def coalesce(x, name=None):
    """A COO tensor with its entries in row-major order and each coordinate once."""
    return need_coo("coalesce", x).coalesce()


@asks("eager:perm:list,tuple!InvalidArgument")
def transpose(x, perm, name=None):
    """x with its sparse dims in the order perm; dense dims stay behind them."""
    import numpy as np
    t, ndim = coo(need_sparse("transpose", "x", x)), len(x.shape)
    perm = [p + ndim if p < 0 else p for p in perm]
    if sorted(perm) != list(range(ndim)):
        raise ValueError(f"transpose: perm must hold 0 to {ndim - 1}, got {perm}")
    n = t.sparse_dim
    if sorted(perm[:n]) != list(range(n)):
        raise ValueError(f"transpose: perm must keep dense dims behind the {n} sparse ones, got {perm}")
    values = t.values()
    if perm[n:] != list(range(n, ndim)):
        values = _core.transpose(values, [0] + [p - n + 1 for p in perm[n:]])
    made = SparseCooTensor(np.stack([t._indices[p] for p in perm[:n]]), values, [x.shape[p] for p in perm])
    return like(x, made)


@asks("eager:shape:list,tuple!InvalidArgument")
def reshape(x, shape, name=None):
    """x with another shape of as many elements; one entry may be −1, and 0 keeps a dim."""
    if not all(hasattr(n, "__index__") for n in shape):
        raise of_kind(f"reshape: shape must hold ints, got {shape!r}")
    t = coo(need_sparse("reshape", "x", x))
    shape = [x.shape[i] if n == 0 else int(n) for i, n in enumerate(shape)]
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        shape[shape.index(-1)] = x.size // rest if rest else 0
    dense = list(t.shape[t.sparse_dim:])
    cut = len(shape) - len(dense)
    if math.prod(shape) != x.size or shape[cut:] != dense:
        raise ValueError(f"reshape: shape {shape} does not fit a sparse tensor of shape {x.shape}")
    return like(x, from_flat(t.flat(), t.values(), shape[:cut]))


@asks("eager:starts:list,tuple,int!InvalidArgument")
def slice(x, axes, starts, ends, name=None):
    """The entries of x from starts up to ends along axes."""
    import numpy as np
    t, ndim = coo(need_sparse("slice", "x", x)), len(x.shape)
    axes, starts, ends = ([int(v) for v in (p.tolist() if isinstance(p, Tensor) else p)] for p in (axes, starts, ends))
    keep, at, shape, values = np.ones(t.nnz(), bool), t._indices.copy(), list(x.shape), t.values()
    for axis, start, end in zip(axes, starts, ends):
        axis = axis + ndim if axis < 0 else axis
        first, last, _ = builtins.slice(start, end).indices(shape[axis])
        last = max(first, last)
        if axis < t.sparse_dim:
            keep &= (at[axis] >= first) & (at[axis] < last)
            at[axis] -= first
        else:
            values = _core.slice(values, [axis - t.sparse_dim + 1], [first], [last])
        shape[axis] = last - first
    values = _core.gather(values, _core.to_tensor(np.flatnonzero(keep)))
    return like(x, SparseCooTensor(at[:, keep], values, shape, t.is_coalesced()))


@asks("eager:keepdim:bool!InvalidArgument dtype:-dict!ValueError dtype:-bytes!ValueError")
def sum(x, axis=None, dtype=None, keepdim=False, name=None):
    """Sums over axis, or over all; sparse again, with one element if all are summed.

    >>> t = paddle.sparse.sparse_coo_tensor([[0, 1], [1, 1]], [2.0, 3.0], [2, 2])
    >>> paddle.sparse.sum(t, axis=0).to_dense().tolist()
    [0.0, 5.0]
    """
    import numpy as np
    dtype = None if dtype is None else to_dtype(dtype)
    t, ndim = coo(need_sparse("sum", "x", x)), len(x.shape)
    values = t.values() if dtype is None else _core.cast(t.values(), dtype)
    if dtype is None and dtype_name(values.dtype) in ("bool", "int32"):
        values = _core.cast(values, "int64")
    if axis is None:
        total = _core.reshape(_core.sum(values), [1])
        shape = [1] * ndim if keepdim else [1]
        return SparseCooTensor(np.zeros((len(shape), 1)), total, shape, True)
    axes = {a + ndim if a < 0 else a for a in (axis if isinstance(axis, (list, tuple)) else [axis])}
    n = t.sparse_dim
    inner = sorted(a - n + 1 for a in axes if a >= n)
    values = _core.sum(values, inner, None, keepdim) if inner else values
    rest = [d for d in range(n) if keepdim or d not in axes]
    at = [np.zeros_like(t._indices[d]) if d in axes else t._indices[d] for d in rest]
    shape = tuple(1 if d in axes else x.shape[d] for d in rest)
    if not rest:
        return SparseCooTensor(np.zeros((1, 1)), _core.sum(values, [0], None, True), [1, *values.shape[1:]], True)
    made = from_flat(np.ravel_multi_index(tuple(at), shape), values, shape)
    return like(x, made) if len(made.shape) in (2, 3) else made
