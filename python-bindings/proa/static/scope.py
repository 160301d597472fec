"""Scopes: map names to the values of persistable variables, which programs read and write when they run."""
import contextlib

from .. import _core
from ..framework.dtype import dtype_name
from ..framework.mode import eager

__all__ = ["Scope", "global_scope", "scope_guard"]


def _elements(tensor):
    """A flat array on a tensor's memory."""
    import ctypes
    import numpy
    if not tensor.is_contiguous():
        raise RuntimeError("elements can be set by index in a contiguous tensor only: set() the whole")
    dtype = numpy.dtype(dtype_name(tensor.dtype))
    memory = (ctypes.c_char * (tensor.size * dtype.itemsize)).from_address(tensor.data_ptr())
    return numpy.frombuffer(memory, dtype)


class ScopeTensor:
    """The value of a variable: what find_var(name).get_tensor() gives, and what fetches without NumPy are."""

    def __init__(self, tensor=None, owner=None, lod=None):
        self._tensor, self._owner = tensor, owner
        self._own = lod or []
        self._flat = None  # a tensor, and an array on its memory
        self._dims = []

    @property
    def _lod(self):
        return self._own if self._owner is None else self._owner.lod

    @_lod.setter
    def _lod(self, lod):
        if self._owner is None:
            self._own = lod
        else:
            self._owner.lod = lod

    def _value(self):
        value = self._tensor if self._owner is None else self._owner.value
        if value is None:
            raise RuntimeError("the variable holds no tensor yet: run the startup program, or set() it")
        return value

    def set(self, array, place=None):
        """Takes over an array's elements, shape and dtype."""
        with eager():
            value = _core.to_tensor(array)
        if self._owner is not None:
            self._owner.assign(value)
        else:
            self._tensor = value

    def _set_dims(self, shape):
        """The shape that _alloc_float and its like give; set() brings its own."""
        self._dims = list(shape)

    def _get_dims(self):
        return self.shape()

    def _alloc_float(self, place=None):
        self._alloc("float32")

    def _alloc_double(self, place=None):
        self._alloc("float64")

    def _alloc_int(self, place=None):
        self._alloc("int32")

    def _alloc(self, dtype):
        with eager():
            self.set(_core.full(self._dims, 0, dtype))

    def _element(self, index, value=None):
        """The element at an index of the flattened tensor, set first if a value is given."""
        tensor = self._value()
        if self._flat is None or self._flat[0] is not tensor:
            self._flat = tensor, _elements(tensor)
        flat = self._flat[1]
        if value is not None:
            flat[index] = value
        return flat[index].item()

    _get_float_element = _get_double_element = _element
    _set_float_element = _set_double_element = _element

    def _ptr(self):
        return self._value().data_ptr()

    def _place(self):
        return self._value().place

    def numpy(self):
        """A copy of the elements."""
        with eager():
            return self._value().detach().numpy()

    def __array__(self, dtype=None, copy=None):
        value = self.numpy()
        return value if dtype is None else value.astype(dtype, copy=False)

    def shape(self):
        """The shape, a list."""
        return list(self._value().shape)

    def _is_initialized(self):
        return (self._tensor if self._owner is None else self._owner.value) is not None

    def _dtype(self):
        return self._value().dtype

    def lod(self):
        """The level-of-detail offsets; empty for a plain tensor."""
        return self._lod

    def set_lod(self, lod):
        """Sets the offsets."""
        self._lod = [list(level) for level in lod]

    def has_valid_recursive_sequence_lengths(self):
        """Whether the innermost level ends at the number of rows, and each other one at the sequences of the next."""
        ends = [*(len(level) - 1 for level in self._lod[1:]), self.shape()[0]]
        return all(level and level[0] == 0 and level[-1] == end and level == sorted(level)
                   for level, end in zip(self._lod, ends))

    def recursive_sequence_lengths(self):
        """The level-of-detail lengths; empty for a plain tensor."""
        return [[b - a for a, b in zip(level, level[1:])] for level in self._lod]

    def set_recursive_sequence_lengths(self, lengths):
        """Sets the offsets by lengths."""
        lod = []
        for level in lengths:
            offsets = [0]
            for n in level:
                offsets.append(offsets[-1] + n)
            lod.append(offsets)
        self._lod = lod

    def __len__(self):
        return self.shape()[0]

    def __repr__(self):
        return repr(self.numpy())


class ScopeVariable:
    """A place for a tensor under a name."""

    def __init__(self, scope, name):
        self._scope, self._name, self.value, self.lod = scope, name, None, []
        self._number = None  # float or int: of the one number that set_float or set_int gave

    def assign(self, tensor):
        """Takes over a tensor's data: in place if shape and dtype are the same, so that programs see it."""
        old = self.value
        if old is tensor:
            return
        if old is not None and old.shape == tensor.shape and old.dtype == tensor.dtype:
            with eager():
                old.set_value(tensor)
            return
        self.hold(tensor)

    def hold(self, tensor):
        """Holds this very tensor from now on."""
        self.value = tensor
        self._scope._version += 1

    def name(self):
        return self._name

    def get_tensor(self):
        """The value, to be read as an array or set()."""
        return ScopeTensor(owner=self)

    def is_initialized(self):
        return self.value is not None

    def set_float(self, value):
        """Holds one number."""
        self.get_tensor().set([float(value)])
        self._number = float

    def set_int(self, value):
        """Holds one whole number."""
        self.get_tensor().set([int(value)])
        self._number = int

    def is_float(self):
        return self._number is float

    def is_int(self):
        return self._number is int

    def get_float(self):
        return float(self.value)

    def get_int(self):
        return int(self.value)

    def get_lod_tensor_array(self):
        """The value, if it is a list of tensors."""
        return [ScopeTensor(one.detach(), lod=one._lod) if isinstance(one, _core.Tensor) else one
                for one in self.value]

    def get_lod_rank_table(self):
        """The value, if it is what lod_rank_table makes."""
        return self.value

    def get_selected_rows(self):
        """The value as rows of a table, to be read or set."""
        return ScopeRows(self)


class ScopeRows:
    """Rows of a table under a name: what find_var(name).get_selected_rows() gives. The value is theirs once height, rows
    and elements are set."""

    def __init__(self, variable):
        self._variable = variable
        self._height, self._index, self._tensor = 0, [], ScopeTensor(owner=self)
        self.value, self.lod = None, []
        if variable.value is not None and _core.is_rows(variable.value):
            value = variable.value
            self._height, self._index = _core.rows_height(value), _core.rows_index(value).tolist()
            self.value = _core.rows_values(value)

    def assign(self, tensor):
        """Takes over the rows' elements."""
        self.value = tensor
        self._keep()

    def _keep(self):
        if self.value is not None and self._index and self.value.shape[0] == len(self._index) and \
                self._height > max(self._index):
            with eager():
                index = _core.to_tensor(self._index, dtype="int64")
                self._variable.hold(_core.rows_new(index, self.value, self._height))

    def set_height(self, height):
        """Sets the number of the table's rows."""
        self._height = int(height)
        self._keep()

    def set_rows(self, rows):
        """The number of each row that is given."""
        self._index = [int(row) for row in rows]
        self._keep()

    def height(self):
        return self._height

    def rows(self):
        return list(self._index)

    def get_tensor(self):
        """The rows' elements."""
        return self._tensor

    def sync_index(self):
        """Rows are found by their numbers at any time."""


class Scope:
    """Variables by name; what is not found here is looked for in the parent.

    >>> import proa as paddle
    >>> scope = paddle.static.Scope()
    >>> scope.var("w").get_tensor().set([1.0, 2.0])
    >>> scope.find_var("w").get_tensor().shape()
    [2]
    """

    def __init__(self, parent=None):
        self._parent, self._vars, self._kids, self._version = parent, {}, [], 0

    def var(self, name):
        """The variable of that name in this scope, made if there is none."""
        found = self._vars.get(name)
        if found is None:
            found = self._vars[name] = ScopeVariable(self, name)
        return found

    def find_var(self, name):
        """The variable of that name here or in a parent, or None."""
        scope = self
        while scope is not None:
            found = scope._vars.get(name)
            if found is not None:
                return found
            scope = scope._parent
        return None

    def new_scope(self):
        """A scope whose parent this is."""
        kid = Scope(self)
        self._kids.append(kid)
        return kid

    def drop_kids(self):
        """Forgets the scopes made by new_scope."""
        self._kids.clear()

    def local_var_names(self):
        """Names of this scope's own variables."""
        return list(self._vars)

    def erase(self, names):
        """Takes variables out."""
        for name in names:
            self._vars.pop(name, None)
        self._version += 1

    def _find(self, name):
        """The tensor under a name, or None."""
        found = self.find_var(name)
        return None if found is None else found.value

    def _generation(self):
        """Changes whenever some name stands for another tensor."""
        scope, total = self, 0
        while scope is not None:
            total, scope = total + scope._version, scope._parent
        return total


_current = Scope()


def global_scope():
    """The scope that executors use when none is given."""
    return _current


@contextlib.contextmanager
def scope_guard(scope):
    """Makes scope the global one inside the with statement."""
    global _current
    before, _current = _current, scope
    try:
        yield
    finally:
        _current = before


def _switch_scope(scope):
    global _current
    before, _current = _current, scope
    return before
