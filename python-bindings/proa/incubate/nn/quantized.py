"""Conversions: to a dtype, and to integers of eight bits, which fused functions answer where they have a scale. Uses _core."""
from ... import _core


def of_dtype(x, dtype):
    """x itself if it is of that dtype."""
    return x if x.dtype == dtype else _core.cast(x, dtype)


def to_int8(x, scale, round_type, high, low):
    """high · scale · x rounded (round_type 0: ties to even, else away from zero) and cut to [low, high], as int8."""
    return _core.cast(_core.clip(_rounded(_core.scale(_core.cast(x, "float32"), high * scale), round_type), low, high), "int8")


def to_offset_uint8(x, scale, round_type, high, low):
    """scale · x rounded and cut to [low, high], plus 128, as uint8: keys and values in a cache. scale is a tensor."""
    whole = _core.clip(_rounded(_core.cast(x, "float32") * scale, round_type), low, high)
    return _core.cast(whole + 128.0, "uint8")


def from_offset_uint8(x, scale, dtype):
    """to_offset_uint8 undone, with the inverse scale."""
    return _core.cast((_core.cast(x, "float32") - 128.0) * scale, dtype)


def _rounded(x, round_type):
    away = _core.round(x)
    if round_type != 0:
        return away
    return _core.where(_core.abs(x - _core.trunc(x)) == 0.5, 2.0 * _core.round(x * 0.5), away)
