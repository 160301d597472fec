"""Unknown dims: what `shape` and `size` of a program's variable are while a program is made, for whoever asks. Proa's
own modules get Dims, which are no ints: they compute as numbers of the program or raise, so that no -1 enters a
calculation. A user's code in static mode gets Paddle's tuple with -1; under to_static it gets a list with numbers of the
program."""
import sys

from .. import _core
from . import mode

Dim, Tensor = _core.Dim, _core.Tensor
_PACKAGE = __name__.partition(".")[0] + "."


def shape_of(variable, dims):
    """What `variable.shape` is for the caller of this function; dims: the list of ints, with -1. Called from C."""
    capturing = _core.is_capturing()
    if sys._getframe(1).f_globals.get("__name__", "").startswith(_PACKAGE):
        return [Dim(variable, i) if n < 0 else n for i, n in enumerate(dims)] if capturing and -1 in dims else dims
    if not capturing or mode.static_enabled():
        return tuple(dims)
    return numbers(variable, dims) if -1 in dims else dims


def size_of(variable, _):
    """What `variable.size` is: a number of the program. Called from C."""
    if not _core.is_capturing():
        return -1
    count = 1
    for n in numbers(variable, variable.declared_shape):
        count = n * count
    return count


def numbers(variable, dims):
    """A variable's dims; those that are unknown as numbers of the program, from one `shape` op."""
    from ..jit.dy2static.runtime.numbers import as_number
    sizes = _core.shape(variable)
    return [as_number(sizes[i]) if n < 0 else n for i, n in enumerate(dims)]


def number_of(variable, axis):
    """The number of the program that a Dim stands for. Called from C."""
    from ..jit.dy2static.runtime.numbers import as_number
    return as_number(_core.shape(variable)[axis])


def refuse_number(what, _=None):
    """Raises the error for a length of the run that is asked for as a Python number. Called from C."""
    from ..jit.dy2static.errors import refuse
    raise refuse("a length that is unknown while the program is made (None or -1 in its inputs), or a number that is "
                 "calculated from one, is needed here as a Python number: give the axis a number in InputSpec or "
                 "static.data", users_place())


def users_place():
    """(file, line) of the innermost line that is not Proa's."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("<unknown>", 0)


# ---- questions that Proa's functions ask of shapes ----------------------------------------


def differ(a, b):
    """Whether two lengths, or two shapes, certainly differ: of unknown ones only the run could tell."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) != len(b) or any(map(differ, a, b))
    return isinstance(a, int) and isinstance(b, int) and a != b


def alike(a, b):
    """Whether two lengths, or two shapes, are certainly the same."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a is b or isinstance(a, Dim) and isinstance(b, Dim) and (a == b) is True


def stretches(a, b):
    """Whether length a is 1, and b may be another: a is broadcast along b."""
    return known(a) and a == 1 and not (known(b) and b == 1)


def known(*lengths):
    """Whether all of these lengths are Python numbers."""
    return all(isinstance(n, int) for n in lengths)


def is_empty(x):
    """Whether a tensor certainly has no elements."""
    return 0 in x.declared_shape


def most(first, *rest):
    """The greatest of lengths."""
    return _extreme(max, "maximum", first, rest)


def least(first, *rest):
    """The least of lengths."""
    return _extreme(min, "minimum", first, rest)


def _extreme(plain, op, found, rest):
    from ..jit.dy2static.runtime.numbers import combined
    for n in rest:
        if known(found, n):
            found = plain(found, n)
        else:
            found = combined(getattr(_core, op), number(found), number(n))
    return found


def number(n):
    """A length as it is, a Dim as its number."""
    return n.number() if isinstance(n, Dim) else n


def runs_number(value):
    """Whether a value is a number that only the run knows: a Dim, or what was calculated from one."""
    if isinstance(value, Dim):
        return True
    if type(value) is Tensor or not isinstance(value, Tensor) or not value.is_symbolic:
        return False
    from ..jit.dy2static.runtime.numbers import Number
    return isinstance(value, Number)


def reshaped(x, shape):
    """x under a shape. Where one length is unknown it follows from the others, and the program asks for none."""
    lengths = [n for n in shape if isinstance(n, int)]
    if len(lengths) == len(shape) - 1 and -1 not in lengths and 0 not in lengths:
        shape = [n if isinstance(n, int) else -1 for n in shape]
    return _core.reshape(x, shape)


def tensor_of(lengths, dtype):
    """A tensor with one axis that holds lengths."""
    if known(*lengths):
        return _core.to_tensor(lengths, dtype=dtype)
    from ..jit.dy2static.runtime.numbers import in_dtype
    return _core.stack([in_dtype(number(n), dtype) for n in lengths])
