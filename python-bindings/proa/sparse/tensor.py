"""Sparse tensors in COO and CSR form: immutable indices on the host, and a dense tensor of the stored values.

A sparse tensor is a Tensor whose handle no dense op takes (a SelectedRows without rows), so that an op that does not know
it refuses it. Its gradient is that of its values: whatever is computed of it is computed of them by ordinary ops."""
import math

from .. import _core
from .._errors import of_kind
from ..tensor._tools import Tensor, dtype_name

_handle = None


def _placeholder():
    global _handle
    if _handle is None:
        _handle = _core.rows_new(_core.full([0], 0, "int64"), _core.full([0, 1], 0, "float32"), 0)
    return _handle


def host(t):
    """A tensor, or what NumPy makes an array of, as an int64 array."""
    import numpy as np
    return np.asarray(t.numpy() if isinstance(t, Tensor) else t).astype(np.int64)


def _elements(t, indent):
    """The elements as a tensor prints them; lines but the first begin one column behind the indent."""
    text = str(t).partition("\n       ")[2][:-1]
    return text.replace("\n", "\n" + " " * (indent + 1))


class SparseTensor(Tensor):
    """What COO and CSR tensors share. Made by paddle.sparse and Tensor.to_sparse_coo, to_sparse_csr."""

    def __new__(cls, *args):
        return Tensor.__new__(cls, _placeholder())

    # ---- as a Tensor ----

    @property
    def shape(self):
        return list(self._shape)

    @property
    def ndim(self):
        return len(self._shape)

    @property
    def size(self):
        return math.prod(self._shape)

    @property
    def dtype(self):
        return self._values.dtype

    @property
    def place(self):
        return self._values.place

    @property
    def is_symbolic(self):
        return False

    @property
    def is_leaf(self):
        return self._values.is_leaf

    @property
    def stop_gradient(self):
        return self._values.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, stop):
        self._values.stop_gradient = stop

    @property
    def grad(self):
        made = self._values.grad
        return None if made is None else self.with_values(made)

    def dim(self):
        return len(self._shape)

    ndimension = dim

    def is_sparse(self):
        return True

    def is_dense(self):
        return False

    def is_selected_rows(self):
        return False

    def values(self):
        """The stored values, a dense tensor through which gradients flow."""
        return self._values

    def nnz(self):
        """The number of stored elements, or of stored rows of dense dims."""
        return self._values.shape[0]

    def backward(self, grad_tensor=None, retain_graph=False):
        """Runs backward from the values, by grad_tensor's values (ones by default)."""
        self._values.backward(grad_tensor.values() if isinstance(grad_tensor, SparseTensor) else grad_tensor, retain_graph)

    def clear_grad(self, set_to_zero=True):
        self._values.clear_grad()

    clear_gradient = clear_grad

    def retain_grads(self):
        self._values.retain_grads()

    def detach(self):
        return self.with_values(self._values.detach())

    def clone(self):
        return self.with_values(_core.assign(self._values))

    def astype(self, dtype):
        return self.with_values(_core.cast(self._values, dtype))

    cast = astype

    def numpy(self):
        return self.to_dense().numpy()

    def tolist(self):
        return self.to_dense().tolist()

    def __len__(self):
        return self._shape[0]

    def __repr__(self):
        lines = [f"Tensor(shape={self.shape}, dtype=paddle.{dtype_name(self.dtype)}, place={self.place}, "
                 f"stop_gradient={self.stop_gradient}, "]
        lines += [f"       {name}={_elements(part, len(name))}, " for name, part in self._parts()]
        return "\n".join(lines)[:-2] + ")"

    __str__ = __repr__

    def __deepcopy__(self, memo):
        return self.detach().clone()

    def __reduce_ex__(self, protocol):
        raise TypeError("a sparse tensor cannot be pickled; pickle its indices, values and shape")

    def is_same_shape(self, y):
        return self.shape == list(y.shape)

    def __add__(self, other):
        from . import add
        return add(self, other)

    def __sub__(self, other):
        from . import subtract
        return subtract(self, other)

    def __mul__(self, other):
        from . import multiply
        return multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        from . import divide
        return divide(self, other)

    def __neg__(self):
        return self.with_values(_core.neg(self._values))

    def __pow__(self, other):
        return self.with_values(_core.pow(self._values, other))

    def __matmul__(self, other):
        from . import matmul
        return matmul(self, other)

    matmul = __matmul__

    def transpose(self, perm, name=None):
        from . import transpose
        return transpose(self, perm)

    def reshape(self, shape, name=None):
        from . import reshape
        return reshape(self, shape)


class SparseCooTensor(SparseTensor):
    """Coordinates [sparse dims, n] and values [n, dense dims…]; entries with equal coordinates add up."""

    def __init__(self, indices, values, shape, coalesced=False):
        self._indices, self._values, self._shape, self._coalesced = host(indices), values, tuple(shape), coalesced

    def with_values(self, values):
        """The same pattern with other values."""
        return SparseCooTensor(self._indices, values, self._shape[:self.sparse_dim] + tuple(values.shape[1:]),
                               self._coalesced)

    @property
    def sparse_dim(self):
        return len(self._indices)

    @property
    def sparse_shape(self):
        return self._shape[:self.sparse_dim]

    def is_sparse_coo(self):
        return True

    def is_coalesced(self):
        return self._coalesced

    def indices(self):
        """The coordinates: int64 [sparse dims, n]."""
        return _core.to_tensor(self._indices)

    def flat(self):
        """The coordinates as positions in row-major order."""
        import numpy as np
        if not self.sparse_dim:
            return np.zeros(self.nnz(), np.int64)
        return np.ravel_multi_index(tuple(self._indices), self.sparse_shape) if self.nnz() else np.zeros(0, np.int64)

    def _parts(self):
        return ("indices", self.indices()), ("values", self._values)

    def coalesce(self):
        """Entries in row-major order, each coordinate once.

        >>> t = paddle.sparse.sparse_coo_tensor([[1, 1, 0]], [1.0, 2.0, 4.0], [2])
        >>> t.coalesce().values().tolist()
        [4.0, 3.0]
        """
        return self if self._coalesced else from_flat(self.flat(), self._values, self.sparse_shape)

    def to_dense(self):
        """The dense tensor, zero where nothing is stored."""
        return _core.reshape(summed(self._values, self.flat(), math.prod(self.sparse_shape)), list(self._shape))

    def to_sparse_coo(self, sparse_dim=None):
        return self

    def to_sparse_csr(self):
        """The tensor in CSR form, of two dims or of three, the first of which is a batch."""
        import numpy as np
        if len(self._shape) not in (2, 3) or self.sparse_dim != len(self._shape):
            raise ValueError(f"to_sparse_csr: x must have 2 or 3 dims, all sparse, got {self.shape}")
        t = self.coalesce()
        batch, rows = (1, self._shape[0]) if len(self._shape) == 2 else self._shape[:2]
        at = t._indices[-2] + (t._indices[0] * rows if len(self._shape) == 3 else 0)
        counts = np.bincount(at, minlength=batch * rows).reshape(batch, rows)
        crows = np.concatenate([np.zeros((batch, 1), np.int64), np.cumsum(counts, 1)], 1).reshape(-1)
        return SparseCsrTensor(crows, t._indices[-1], t._values, self._shape)


class SparseCsrTensor(SparseTensor):
    """Matrices, or a batch of them, row by row: where each row's entries begin, their columns, their values."""

    def __init__(self, crows, cols, values, shape):
        self._crows, self._cols, self._values, self._shape = host(crows), host(cols), values, tuple(shape)

    def with_values(self, values):
        """The same pattern with other values."""
        return SparseCsrTensor(self._crows, self._cols, values, self._shape)

    def is_sparse_csr(self):
        return True

    def crows(self):
        """Row pointers: the offset of each row's first entry and, last, the number of entries; of each matrix."""
        return _core.to_tensor(self._crows)

    def cols(self):
        """The column of each entry."""
        return _core.to_tensor(self._cols)

    def _parts(self):
        return ("crows", self.crows()), ("cols", self.cols()), ("values", self._values)

    def to_sparse_coo(self, sparse_dim=None):
        """The tensor in COO form."""
        import numpy as np
        rows = self._shape[-2]
        counts = np.diff(self._crows.reshape(-1, rows + 1), axis=1).reshape(-1)
        at = np.repeat(np.arange(len(counts)), counts)
        indices = np.stack([at, self._cols] if len(self._shape) == 2 else [at // rows, at % rows, self._cols])
        ordered = np.all(np.diff(self._cols)[np.diff(at) == 0] > 0) if len(at) > 1 else True
        return SparseCooTensor(indices, self._values, self._shape, bool(ordered))

    def to_sparse_csr(self):
        return self

    def to_dense(self):
        """The dense tensor, zero where nothing is stored."""
        return self.to_sparse_coo().to_dense()


# ---- what the functions are made of ----------------------------------------------------------


def summed(values, at, count):
    """[count, …] with every row of values added at its place."""
    kind = values.dtype
    wide = _core.cast(values, "int32") if dtype_name(kind) == "bool" else values
    zeros = _core.full([count, *values.shape[1:]], 0, wide.dtype)
    out = _core.index_add(zeros, _core.to_tensor(at), 0, wide) if len(at) else zeros
    return _core.cast(out, kind) if wide is not values else out


def from_flat(flat, values, sparse_shape):
    """A coalesced COO tensor of entries at row-major positions, equal ones added."""
    import numpy as np
    shape = tuple(sparse_shape) + tuple(values.shape[1:])
    if len(flat) < 2 or np.all(np.diff(flat) > 0):
        places = flat
    else:
        places, where = np.unique(flat, return_inverse=True)
        where = where.reshape(-1)
        if len(places) == len(flat):
            order = np.argsort(where, kind="stable")
            values = _core.gather(values, _core.to_tensor(order))
        else:
            values = summed(values, where, len(places))
    indices = np.stack(np.unravel_index(places, sparse_shape)) if len(sparse_shape) else np.zeros((0, len(places)))
    return SparseCooTensor(indices, values, shape, True)


def like(x, made):
    """made, a COO tensor, in the form of x."""
    return made.to_sparse_csr() if isinstance(x, SparseCsrTensor) else made


def need_sparse(who, name, t):
    if isinstance(t, _core.Tensor) and not isinstance(t, SparseTensor):
        raise NotImplementedError(f"(Unimplemented) {who}: {name} must be a sparse Tensor, got a dense one: x.to_sparse_coo(...)")
    if not isinstance(t, SparseTensor):
        raise of_kind(f"{who}: {name} must be a sparse Tensor, got {type(t).__name__}")
    return t


def need_coo(who, x):
    if not isinstance(need_sparse(who, "x", x), SparseCooTensor):
        raise NotImplementedError(f"(Unimplemented) {who}: x must be a COO Tensor, got a CSR one: x.to_sparse_coo(2)")
    return x


def coo(t):
    return t.to_sparse_coo() if isinstance(t, SparseCsrTensor) else t


def dense_to_coo(x, sparse_dim):
    """The elements (or, with fewer sparse dims, slices) of a dense tensor that are not zero."""
    import numpy as np
    ndim = len(x.shape)
    if not isinstance(sparse_dim, int) or not 0 < sparse_dim <= ndim:
        raise ValueError(f"to_sparse_coo: sparse_dim must be in [1, {ndim}], got {sparse_dim!r}")
    array = x.detach().numpy() if dtype_name(x.dtype) != "bfloat16" else _core.cast(x.detach(), "float32").numpy()
    sparse_shape = tuple(x.shape[:sparse_dim])
    there = np.any(array.reshape(math.prod(sparse_shape), -1) != 0, axis=1)
    flat = np.flatnonzero(there)
    rows = _core.reshape(x, [math.prod(sparse_shape), *x.shape[sparse_dim:]])
    return from_flat(flat, _core.gather(rows, _core.to_tensor(flat)), sparse_shape)


def dense_to_csr(x):
    """A dense matrix, or a batch of them, without its zeros."""
    if len(x.shape) not in (2, 3):
        raise ValueError(f"to_sparse_csr: x must have 2 or 3 dims, got shape {list(x.shape)}")
    return dense_to_coo(x, len(x.shape)).to_sparse_csr()
