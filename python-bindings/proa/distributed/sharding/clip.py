"""Gradient clipping by the global norm of gradients that are divided among ranks."""
from ... import _core


def squares(grads):
    """The sum of squares of gradients of any floating dtypes: float32[1]."""
    total = _core.full([1], 0.0, _core.float32)
    for dtype in {g.dtype for g in grads}:
        same = _core.global_squared_norm([g for g in grads if g.dtype == dtype])
        total = total + _core.cast(same, _core.float32).reshape([1])
    return total


class ClipOverRanks:
    """ClipGradByGlobalNorm whose norm is over several ranks: total_of(params_grads) gives the sum of squares."""

    def __init__(self, clip, total_of):
        self._clip, self._total_of = clip, total_of

    def __getattr__(self, name):
        return getattr(self._clip, name)

    def __call__(self, params_grads):
        clipped = [(p, g) for p, g in params_grads if g is not None and getattr(p, "need_clip", True)]
        norm = _core.sqrt(self._total_of(clipped))
        limit = _core.full_like(norm, self._clip.clip_norm)
        factor = _core.divide(limit, _core.maximum(norm, limit))
        scaled = {id(p): _core.multiply(g, _core.cast(factor, g.dtype)) for p, g in clipped}
        return [(p, scaled.get(id(p), g)) for p, g in params_grads]
