"""Helpers of all constructs: is a value symbolic (a program's variable), and conversions between both kinds."""
from .... import _core

Tensor = _core.Tensor
NUMBERS = (bool, int, float)


def symbolic(value):
    """True for a program's variable."""
    return isinstance(value, Tensor) and value.is_symbolic


def dtype_of_number(value):
    """The dtype of a Python number in a program."""
    if isinstance(value, bool):
        return _core.bool
    return _core.int64 if isinstance(value, int) else _core.float64


def truth(value, what="a condition"):
    """A tensor of one element as bool without dims."""
    dims = value.declared_shape
    if any(n not in (1, -1) for n in dims):
        raise ValueError(f"{what} must be one value, got a tensor of shape {dims}: reduce it with any() or all()")
    if value.dtype != _core.bool:
        value = _core.cast(value, _core.bool)
    return _core.reshape(value, []) if dims else value


def text_is_asked(variable):
    """Warns where converted code makes text of a program's variable: its value is not known yet."""
    file, line = user_place()
    if line:
        import warnings
        warnings.warn_explicit(f"the text of a tensor is that of the program's variable {variable.name}, without its "
                               "value: print it alone, or outside of the converted function", UserWarning, file, line)


def user_place():
    """(file, line) of the converted code that called the runtime."""
    import sys
    from ..transform import is_converted_code
    frame = sys._getframe(1)
    while frame is not None and not is_converted_code(frame.f_code):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("<unknown>", 0)
