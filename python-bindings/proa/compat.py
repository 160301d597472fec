"""paddle.compat: conversions of text, bytes and numbers for scripts that run on Python 2 and 3."""
import math

__all__ = ["floor_division", "get_exception_message", "long_type", "round", "to_bytes", "to_text"]

long_type = int


def _converted(value, convert, inplace):
    """convert of a value, or of every item of a list, set or dict: in place if wanted."""
    if isinstance(value, (list, set)):
        items = [convert(one) for one in value]
        if not inplace:
            return type(value)(items)
        value.clear()
        (value.extend if isinstance(value, list) else value.update)(items)
        return value
    if isinstance(value, dict):
        items = {convert(key): convert(one) for key, one in value.items()}
        if not inplace:
            return items
        value.update(items)  # a key that changed stays beside its old form, as in Paddle
        return value
    return convert(value)


def to_text(obj, encoding="utf-8", inplace=False):
    """Bytes as text; in lists, sets and dicts every item."""
    return _converted(obj, lambda one: one.decode(encoding) if isinstance(one, bytes) else one, inplace)


def to_bytes(obj, encoding="utf-8", inplace=False):
    """Text as bytes; in lists, sets and dicts every item."""
    return _converted(obj, lambda one: one.encode(encoding) if isinstance(one, str) else one, inplace)


def round(x, d=0):
    """x to d digits behind the point, halves away from zero; a zero keeps its sign."""
    scale = 10 ** d
    if x > 0:
        return math.floor(x * scale + 0.5) / scale
    return math.ceil(x * scale - 0.5) / scale if x < 0 else math.copysign(0.0, x)


def floor_division(x, y):
    """x // y."""
    return x // y


def get_exception_message(exc):
    """The message of an exception."""
    if exc is None:
        raise AssertionError("exc should not be None")
    return str(exc)
