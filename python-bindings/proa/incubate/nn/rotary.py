"""Rotary positions: vectors turned by angles of their positions. Uses _core."""
from ... import _core
from .quantized import of_dtype


def turned(x, cos, sin, by_pairs):
    """x · cos + quarter_turn(x) · sin."""
    return x * cos + quarter_turn(x, by_pairs) * sin


def quarter_turn(x, by_pairs):
    """x turned by a right angle: neighbors (−b, a), or halves."""
    if by_pairs:
        return _core.reshape(_core.stack([-x[..., 1::2], x[..., ::2]], -1), x.shape)
    half = x.shape[-1] // 2
    return _core.concat([-x[..., half:], x[..., :half]], -1)


def turned_sections(x, cos, sin, sections):
    """turned by halves in each of `sections` equal parts of the last dim; computed in cos's dtype, answered in x's."""
    wide = of_dtype(x, cos.dtype)
    if sections > 1:
        split = [*x.shape[:-1], sections, x.shape[-1] // sections]
        quarter = _core.reshape(quarter_turn(_core.reshape(wide, split), False), x.shape)
    else:
        quarter = quarter_turn(wide, False)
    return of_dtype(wide * cos + quarter * sin, x.dtype)
