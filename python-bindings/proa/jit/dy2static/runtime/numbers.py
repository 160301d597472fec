"""Python's numbers whose value only the run knows: a loop's counter, what a branch chose. In the program they are
tensors without dims, here they calculate as Python does (among themselves in int64 and float64, and with a tensor as
a literal would, in the tensor's dtype)."""
from .... import _core
from ....framework.dims import refuse_number
from ..errors import refuse
from .values import NUMBERS, Tensor, dtype_of_number, user_place

_KINDS = {bool: _core.bool, int: _core.int64, float: _core.float64}
_RANK = (bool, int, float)
_WHOLE_DTYPES = (_core.bool, _core.uint8, _core.int8, _core.int16, _core.int32, _core.int64)


class Number(Tensor):
    """A variable of a program that stands for a Python number."""

    @property
    def kind(self):
        return bool if self.dtype == _core.bool else int if self.dtype == _core.int64 else float

    def __hash__(self):
        raise refuse("a number that is known only in the run is a key of a dict or a member of a set: use a list of "
                     "tensors or a tensor, and index that", user_place())

    def __bool__(self):
        refuse_number(self)

    __index__ = __int__ = __float__ = __bool__

    def __neg__(self):
        return Number(_core.neg(in_dtype(self, _above_bool(self))))

    def __pos__(self):
        return Number(in_dtype(self, _above_bool(self)))

    def __abs__(self):
        return Number(_core.abs(in_dtype(self, _above_bool(self))))

    def __invert__(self):
        if self.kind is float:
            raise TypeError("bad operand type for unary ~: 'float'")
        return -self - 1

    def __floor__(self):
        return self if self.kind is not float else Number(_core.cast(_core.floor(self), _core.int64))

    def __ceil__(self):
        return -(-self).__floor__()

    def __trunc__(self):
        return self if self.kind is not float else Number(_core.cast(self, _core.int64))

    def __round__(self, digits=None):
        if self.kind is not float:
            return +self
        if digits is not None:
            scale = 10.0 ** digits
            return (self * scale).__round__() / scale
        down = self.__floor__()
        rest = self - down
        tie = _core.logical_and(rest == 0.5, down % 2 == 1)
        return down + Number(_core.logical_or(rest > 0.5, tie))

    def is_integer(self):
        return self == self.__floor__()

    def __divmod__(self, other):
        return (self // other, self % other) if kind(other) else NotImplemented

    def __rdivmod__(self, other):
        return (other // self, other % self) if kind(other) else NotImplemented

    def __lshift__(self, other):
        return _shift(self, other, False)

    def __rlshift__(self, other):
        return _shift(other, self, False)

    def __rshift__(self, other):
        return _shift(self, other, True)

    def __rrshift__(self, other):
        return _shift(other, self, True)


def kind(value):
    """bool, int or float for a number, known or not; None for anything else."""
    if isinstance(value, Number):
        return value.kind
    if isinstance(value, Tensor) or not isinstance(value, NUMBERS):
        return None
    return bool if isinstance(value, bool) else int if isinstance(value, int) else float


def as_number(value):
    """A tensor of one element as the number that Python would have read from it; no gradient flows through it."""
    whole = value.dtype in _WHOLE_DTYPES
    wanted = _core.bool if value.dtype == _core.bool else _core.int64 if whole else _core.float64
    value = value if value.dtype == wanted else _core.cast(value, wanted)
    value = _core.reshape(value, []) if value.ndim else value
    return Number(value if value.stop_gradient else value.detach())


def dtype_for(*kinds):
    """The dtype that holds numbers of these kinds."""
    return _KINDS[max(kinds, key=_RANK.index)]


def fits(number, dtype):
    """Whether a tensor of this dtype can stand for the number."""
    if kind(number) is bool or dtype == _core.bool:
        return kind(number) is bool and dtype == _core.bool
    return kind(number) is int or dtype not in _WHOLE_DTYPES


def number(value, dtype=None):
    """A Python number as a number of the program, or, of a given dtype, as a tensor without dims."""
    if dtype is not None:
        return _core.full([], value, dtype)
    return Number(_core.full([], value, dtype_of_number(value)))


def tensor(value):
    """A tensor as it is, a number as one of the program."""
    return value if isinstance(value, Tensor) else number(value)


def in_dtype(value, dtype):
    """A number, known or not, or a tensor as a tensor of this dtype."""
    if not isinstance(value, Tensor):
        return _core.full([], value, dtype)
    return Tensor(value) if value.dtype == dtype else _core.cast(value, dtype)


def _above_bool(*numbers):
    return dtype_for(int, *(kind(one) for one in numbers))


# ---- among numbers ------------------------------------------------------------------------


def _in_one_dtype(op):
    function = getattr(_core, op)

    def calculate(x, y):
        dtype = _above_bool(x, y)
        return Number(function(in_dtype(x, dtype), in_dtype(y, dtype)))
    return calculate


def _divide(x, y):
    return Number(_core.divide(in_dtype(x, _core.float64), in_dtype(y, _core.float64)))


def _power(x, y):
    dtype = _above_bool(x, y)
    if dtype == _core.int64 and not isinstance(y, Tensor) and y < 0:
        dtype = _core.float64
    return Number(_core.elementwise_pow(in_dtype(x, dtype), in_dtype(y, dtype)))


def _bits(op):
    function = getattr(_core, op)

    def calculate(x, y):
        dtype = dtype_for(kind(x), kind(y))
        if dtype == _core.float64:
            raise TypeError(f"unsupported operand type(s) for {op}: '{kind(x).__name__}' and '{kind(y).__name__}'")
        return Number(function(in_dtype(x, dtype), in_dtype(y, dtype)))
    return calculate


def _shift(x, y, down):
    if kind(x) in (None, float) or kind(y) in (None, float):
        return NotImplemented
    factor = _power(2, y)
    return _ARITHMETIC["floordiv" if down else "mul"](x, factor)


# ---- with tensors -------------------------------------------------------------------------


def _dtype_beside(plain, other, dividing=False):
    """The dtype in which a number meets a tensor."""
    whole = other.dtype in _WHOLE_DTYPES
    if whole and (kind(plain) is float or dividing):
        return _core.float32
    return other.dtype


def _beside(name, number, other, reflected):
    """number OP other, or other OP number, as with a literal: what Tensor's own operators do with one."""
    method = getattr(Tensor, f"__{name}__")
    if other.dtype == _core.bool and number.kind is int and name in ("add", "sub", "mul"):
        return _core.cast(_beside(name, number, _core.cast(other, _core.float32), reflected), _core.bool)
    dividing = name == "truediv"
    dtype = _dtype_beside(number, other, dividing)
    if dividing and not reflected and not (other.dtype == _core.int64 and number.kind is int):
        return Tensor.__mul__(in_dtype(other, dtype), in_dtype(_divide(1, number), dtype))
    if name in _COMPARISONS or not reflected:
        return method(in_dtype(other, dtype), in_dtype(number, dtype))
    return method(in_dtype(number, dtype), in_dtype(other, dtype))


def combined(function, one, other):
    """function of two tensors or numbers, in the dtype in which they meet."""
    if kind(one) and kind(other):
        dtype = dtype_for(kind(one), kind(other))
        return Number(function(in_dtype(one, dtype), in_dtype(other, dtype)))
    if kind(one) or kind(other):
        known, plain = (other, one) if kind(one) else (one, other)
        dtype = _dtype_beside(plain, known)
    else:
        dtype = other.dtype
    return function(in_dtype(one, dtype), in_dtype(other, dtype))


_ARITHMETIC = {"add": _in_one_dtype("add"), "sub": _in_one_dtype("subtract"), "mul": _in_one_dtype("multiply"),
               "floordiv": _in_one_dtype("floor_divide"), "mod": _in_one_dtype("remainder"), "truediv": _divide,
               "pow": _power, "and": _bits("bitwise_and"), "or": _bits("bitwise_or"), "xor": _bits("bitwise_xor")}
_COMPARISONS = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}  # and how they read mirrored
_COMPARE = {"lt": _in_one_dtype("less_than"), "le": _in_one_dtype("less_equal"), "gt": _in_one_dtype("greater_than"),
            "ge": _in_one_dtype("greater_equal"), "eq": _in_one_dtype("equal"), "ne": _in_one_dtype("not_equal")}


def _add_operators():
    def forward(name, among):
        def operate(self, other):
            if kind(other):
                return among(self, other)
            if isinstance(other, Tensor):  # other stands on the right
                return _beside(_COMPARISONS.get(name, name), self, other, True)
            return getattr(Tensor, f"__{name}__")(Tensor(self), other)
        return operate

    def reflected(name, among):
        def operate(self, other):
            if kind(other):
                return among(other, self)
            if isinstance(other, Tensor):
                return _beside(name, self, other, False)
            return getattr(Tensor, f"__r{name}__")(Tensor(self), other)
        return operate

    for name, among in _ARITHMETIC.items():
        setattr(Number, f"__{name}__", forward(name, among))
        setattr(Number, f"__r{name}__", reflected(name, among))
    for name, among in _COMPARE.items():
        setattr(Number, f"__{name}__", forward(name, among))


_add_operators()
