"""ClipGradByValue, ClipGradByNorm, ClipGradByGlobalNorm: gradient clipping, given to optimizers as grad_clip."""
from .. import _core
from .._elsewhere import elsewhere
from ..framework.selected_rows import on_merged_rows

__all__ = ["ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"]

__getattr__ = elsewhere(__name__)


def merge_selected_rows(x, name=None):
    """SelectedRows with every row once, in ascending order: the sums of equal rows."""
    return _core.rows_merge(x)


def get_tensor_from_selected_rows(x, name=None):
    """The given rows of SelectedRows as a dense Tensor."""
    return _core.rows_values(x)


class ClipGradBase:
    """Calling a clip with [(parameter, gradient)] returns the pairs with gradients clipped; those of parameters
    with need_clip=False stay, and pairs without a gradient go."""

    def __call__(self, params_grads):
        return self._dygraph_clip(params_grads)

    def _dygraph_clip(self, params_grads):
        """Does what a call does: for subclasses to override."""
        pairs = [(p, g) for p, g in params_grads if g is not None]
        wanted = [i for i, (p, _) in enumerate(pairs) if getattr(p, "need_clip", True)]
        recording = _core.set_recording(False)
        try:
            clipped = self._clip([pairs[i][1] for i in wanted]) if wanted else []
        finally:
            _core.set_recording(recording)
        for i, grad in zip(wanted, clipped):
            pairs[i] = pairs[i][0], grad
        return pairs


class ClipGradByValue(ClipGradBase):
    """Clips every element into [min, max]; min is -max unless given."""

    def __init__(self, max, min=None):
        if min is None:
            if not max > 0:
                raise AssertionError(f"ClipGradByValue: max must be positive when min is not given, got {max}")
            min = -max
        self.max, self.min = float(max), float(min)

    def __str__(self):
        return f"Clip Gradient By Value, min = {self.min:f}, max={self.max:f}"

    def _clip(self, grads):
        return [on_merged_rows(lambda v: _core.clip(v, self.min, self.max), g) for g in grads]


class ClipGradByNorm(ClipGradBase):
    """Scales a gradient whose L2 norm is larger than clip_norm down to it."""

    def __init__(self, clip_norm):
        self.clip_norm = float(clip_norm)

    def __str__(self):
        return f"Gradient Clip By Norm, clip_norm={self.clip_norm:f}"

    def _clip(self, grads):
        return [on_merged_rows(lambda v: _core.clip_by_norm(v, self.clip_norm), g) for g in grads]


class ClipGradByGlobalNorm(ClipGradBase):
    """Scales all gradients by one factor, so that their common L2 norm is clip_norm at most."""

    def __init__(self, clip_norm, group_name="default_group", auto_skip_clip=False):
        if not isinstance(auto_skip_clip, bool):
            raise AssertionError(f"ClipGradByGlobalNorm: auto_skip_clip must be a bool, got {auto_skip_clip!r}")
        self.clip_norm, self.group_name, self.auto_skip_clip = float(clip_norm), group_name, auto_skip_clip

    def __str__(self):
        return f"Gradient Clip By GlobalNorm, global_norm={self.clip_norm:f}"

    def _clip(self, grads):
        by_dtype = {}
        for i, g in enumerate(grads):
            if _core.is_rows(g):
                grads[i] = _core.rows_merge(g)
                g = _core.rows_values(grads[i])
            by_dtype.setdefault(g.dtype, []).append(g)
        wide = _core.float64 if _core.float64 in by_dtype else _core.float32
        squared = [_core.cast(_core.global_squared_norm(same), wide) for same in by_dtype.values()]
        total = squared[0]
        for more in squared[1:]:
            total = _core.add(total, more)
        norm = _core.sqrt(total)
        limit = _core.full_like(norm, self.clip_norm)
        factor = _core.divide(limit, _core.maximum(norm, limit))  # stays on the device: no one waits for it
        factors = {dtype: _core.cast(factor, dtype) for dtype in by_dtype}
        return [_core.multiply(g, factors[g.dtype]) for g in grads]
