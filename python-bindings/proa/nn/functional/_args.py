"""Argument forms of this folder's functions (ints, padding, data formats) and reductions.

Every form that Paddle takes is turned into the one that the ops take; nothing here touches tensor data.
"""
from operator import index

from ... import _core
from ..._errors import compared

_LAST = ({}, {"NCL": False, "NLC": True}, {"NCHW": False, "NHWC": True}, {"NCDHW": False, "NDHWC": True})


def channel_last(data_format, n, who):
    """Whether the channels come last in a data format of n spatial axes; ValueError for any other format."""
    last = _LAST[n].get(data_format) if isinstance(data_format, str) else None
    if last is None:
        first, second = _LAST[n]
        raise ValueError(f"{who}: data_format must be '{first}' or '{second}', got {data_format!r}")
    return last


def ints(value, n, who, what):
    """A list of n ints from one int or a sequence of n."""
    if type(value) is int:
        return [value] * n
    try:
        values = [value] * n if _is_one(value) else list(value)
        if len(values) != n:
            raise TypeError
        if not all(_is_one(v) for v in values if isinstance(v, _core.Tensor)):
            raise AssertionError(f"{who}: {what} must be an int or {n} ints, got a Tensor")
        return [index(v) for v in values]
    except TypeError:
        raise ValueError(f"{who}: {what} must be an int or {n} ints, got {value!r}") from None


def _is_one(value):
    if isinstance(value, _core.Tensor):
        return not value.is_symbolic and value.size == 1
    return hasattr(value, "__index__")


def padding(value, n, last, who, lead="", negative=False):
    """(numbers, algorithm) of a padding: an int, n or 2n ints, pairs for every axis, 'SAME' or 'VALID'. lead: of the text of
    the error for negative numbers; negative: they are taken."""
    if type(value) is int:
        return _counted([value] * n, value, who, lead, negative), "EXPLICIT"
    if isinstance(value, str):
        algorithm = value.upper()
        if algorithm not in ("SAME", "VALID"):
            raise ValueError(f"{who}: padding must be 'SAME', 'VALID' or numbers, got {value!r}")
        return [0] * n, algorithm
    if isinstance(value, (list, tuple)):
        values = value
        if len(values) == n + 2 and isinstance(values[0], (list, tuple)):
            outer = (values[0], values[-1]) if last else values[:2]
            if any(p != 0 for pair in outer for p in pair):
                raise ValueError(f"{who}: batch and channel axes cannot be padded, got padding {value!r}")
            values = [p for pair in (values[1:-1] if last else values[2:]) for p in pair]
        if len(values) not in (n, 2 * n):
            raise ValueError(f"{who}: padding must have {n} or {2 * n} numbers, or a pair for each of {n + 2} axes, "
                             f"got {value!r}")
        values = ints(values, len(values), who, "padding")
        if len(values) == 2 * n and values[::2] == values[1::2]:
            values = values[::2]
        return _counted(values, value, who, lead, negative), "EXPLICIT"
    return _counted(ints(value, n, who, "padding"), value, who, lead, negative), "EXPLICIT"


def _counted(values, given, who, lead, negative):
    if min(values) < 0 and not negative:
        raise ValueError(f"{lead}{who}: padding must not be negative, got {given!r}")
    return values


def reduction_of(reduction, who):
    """reduction itself if it is one; ValueError if not."""
    if reduction not in ("mean", "sum", "none"):
        compared(reduction)
        raise ValueError(f"{who}: reduction must be 'sum', 'mean' or 'none', got {reduction!r}")
    return reduction


def reduced(loss, reduction, who):
    """A loss after its reduction: a scalar, or the loss itself for 'none'."""
    if reduction == "mean":
        return _core.mean(loss)
    if reduction == "sum":
        return _core.sum(loss)
    if reduction != "none":
        reduction_of(reduction, who)
    return loss
