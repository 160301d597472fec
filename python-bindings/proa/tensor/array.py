"""Tensor arrays: lists of tensors that grow as a program runs. Eagerly they are Python lists; in a program one is a
TensorArray, whose items have one shape and lie in one variable [items, ...] that every write makes anew."""
from .. import _core
from ..framework.dims import tensor_of
from ..framework.dtype import to_dtype

__all__ = ["array_length", "array_read", "array_write", "create_array"]


class Outer:
    """Notes the tensor arrays from outside that are written while it is entered, and what they were before."""

    _open = []  # innermost last

    def __init__(self):
        self.arrays = []  # (array, value before)

    def __enter__(self):
        Outer._open.append(self)
        return self

    def __exit__(self, *error):
        Outer._open.pop()

    @staticmethod
    def note(array):
        """array is about to be written."""
        for one in Outer._open[array._depth:]:
            if not any(a is array for a, _ in one.arrays):
                one.arrays.append((array, array._value))


class TensorArray:
    """A tensor array of a program. Like a list, it is changed in place."""

    __slots__ = "_depth", "__dict__", "__weakref__"  # what blocks change stands in __dict__: _value

    def __init__(self, value):
        self._value, self._depth = value, len(Outer._open)

    @property
    def dtype(self):
        return self._value.dtype

    @property
    def shape(self):
        """Of an item."""
        return self._value.declared_shape[1:]

    @property
    def name(self):
        return self._value.name

    def _set(self, value):
        Outer.note(self)
        self._value = value

    def append(self, x):
        """One more item."""
        array_write(x, array_length(self), self)

    def extend(self, items):
        """All of items, which are a list or another array."""
        if isinstance(items, TensorArray):
            _for_each(items, self.append)
            return
        for one in items:
            self.append(one)

    def pop(self, i=-1):
        """Takes an item out: the last, or that at place i, an int."""
        if not isinstance(i, int):
            raise AssertionError(f"pop: i must be an int, got {type(i).__name__}")
        taken = self[i]
        if i == -1:
            self._set(self[:-1]._value)
        else:
            rows = tensor_array_to_tensor(self, 0, use_stack=True)[0]
            self._set(_of_rows(_core.concat([rows[:i], rows[i + 1:]], 0))._value)
        return taken

    def __len__(self):
        raise TypeError("the length of a tensor array is known when the program runs: call paddle.tensor.array_length")

    def __iter__(self):
        raise TypeError("a tensor array has as many items as the run makes: read them with paddle.tensor.array_read in "
                        "a while_loop, or stack them")

    def __getitem__(self, i):
        if isinstance(i, slice):
            return _of_rows(tensor_array_to_tensor(self, 0, use_stack=True)[0][i])
        return array_read(self, array_length(self) + i if isinstance(i, int) and i < 0 else i)

    def __setitem__(self, i, x):
        array_write(x, i, self)

    def __repr__(self):
        return f"TensorArray({self.name}, items of shape {self.shape})"


def _for_each(array, take):
    """take(item) for each item, one after the other, in a loop of the program; take appends to one array."""
    into, count = take.__self__, array_length(array)

    def step(i, value):
        into._value = value
        take(array_read(array, i))
        return i + 1, into._value
    before = into._value
    results = _core.while_loop(lambda i, value: i < count, step, [_core.full([1], 0, "int64"), before])
    into._value = before
    into._set(results[1])


def _of_rows(rows):
    """A tensor's rows as an array."""
    made = TensorArray(_core.array_create(rows.dtype, [max(n, 0) for n in rows.declared_shape[1:]]))
    count = _core.slice(_core.shape(rows), [0], [0], [1])
    count = _core.cast(count, "int64")

    def step(i, value):
        return i + 1, _core.array_write(value, _core.squeeze(_core.gather(rows, i, 0), [0]), i)
    results = _core.while_loop(lambda i, value: i < count, step, [_core.full([1], 0, "int64"), made._value])
    made._value = results[1]
    return made


def _index(i, who):
    if isinstance(i, bool) or not isinstance(i, (int, _core.Tensor)):
        raise TypeError(f"{who}: i must be a Tensor of one integer, got {type(i).__name__}")
    return _core.full([1], i, "int64") if isinstance(i, int) else i


def _place(array, i, who):
    """i as a plain number, for a list."""
    if not isinstance(array, list):
        raise TypeError(f"{who}: array must be a list or a tensor array, got {type(array).__name__}")
    i = int(_index(i, who))
    if i < 0:
        raise IndexError(f"{who}: i must not be negative, got {i}")
    return i


def create_array(dtype, initialized_list=None):
    """An array that holds the tensors of initialized_list: a list, or in static mode a TensorArray.

    >>> import proa as paddle
    >>> array = paddle.tensor.create_array("float32")
    >>> array = paddle.tensor.array_write(paddle.ones([2]), paddle.zeros([1], "int64"), array)
    >>> int(paddle.tensor.array_length(array))
    1
    """
    if initialized_list is not None and not isinstance(initialized_list, (list, tuple)):
        raise TypeError(f"create_array: initialized_list must be a list or tuple, got {type(initialized_list).__name__}")
    items = list(initialized_list or [])
    for item in items:
        if not isinstance(item, _core.Tensor):
            raise TypeError(f"create_array: initialized_list must hold Tensors, got {type(item).__name__}")
    if not _core.is_capturing():
        return items
    array = TensorArray(_core.array_create(to_dtype(dtype)))
    for i, item in enumerate(items):
        array_write(item, i, array)
    return array


def array_write(x, i, array=None):
    """Puts x at place i of array (default: a new one) and returns it."""
    if not isinstance(x, _core.Tensor):
        raise TypeError(f"array_write: x must be a Tensor, got {type(x).__name__}")
    if array is None:
        array = create_array(x.dtype)
    if isinstance(array, TensorArray):
        array._set(_core.array_write(array._value, x, _index(i, "array_write")))
        return array
    i = _place(array, i, "array_write")
    if i > len(array):
        raise IndexError(f"array_write: i is {i}, behind the end of an array of {len(array)} items")
    array[i:i + 1] = [x]
    return array


def array_read(array, i):
    """The tensor at place i of array."""
    if isinstance(array, TensorArray):
        return _core.array_read(array._value, _index(i, "array_read"))
    return array[_place(array, i, "array_read")]


def array_length(array):
    """The number of items of array: a Tensor of one int64 in a program, else an int."""
    if isinstance(array, TensorArray):
        return _core.array_length(array._value)
    if not isinstance(array, list):
        raise TypeError(f"array_length: array must be a list or a tensor array, got {type(array).__name__}")
    return len(array)


def tensor_array_to_tensor(input, axis=1, name=None, use_stack=False):
    """(tensor, sizes): the items of an array side by side along axis, or stacked along a new one."""
    if isinstance(input, TensorArray):
        return tuple(_core.array_to_tensor(input._value, axis, use_stack))
    out = (_core.stack if use_stack else _core.concat)(list(input), axis)
    return out, tensor_of([1 if use_stack else x.shape[axis] for x in input], "int32")
