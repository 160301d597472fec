"""clip_grad_norm_ and clip_grad_value_: clip the gradients of given parameters in place."""
from ... import _core


def _list(parameters):
    return [parameters] if isinstance(parameters, _core.Tensor) else list(parameters)


def _norm(values, kind):
    flat = _core.abs(_core.reshape(values, [-1]))
    if kind == float("inf"):
        return _core.max(flat)
    if kind == 0:
        return _core.sum(_core.cast(_core.not_equal(flat, _core.full_like(flat, 0.0)), flat.dtype))
    return _core.sum(flat) if kind == 1 else _core.sqrt(_core.sum(_core.multiply(flat, flat)))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """Scales the gradients so that the norm of all of them is max_norm at most; returns the norm before."""
    parameters = _list(parameters)
    try:
        kind = float(norm_type)
    except (TypeError, ValueError):
        kind = None
    if kind not in (0.0, 1.0, 2.0, float("inf")):
        raise ValueError(f"clip_grad_norm_: norm_type must be inf, 0, 1 or 2, got {norm_type}")
    max_norm = float(max_norm)
    owners = [p for p in parameters if p.grad is not None]
    if not owners:
        return _core.to_tensor(0.0)
    recording = _core.set_recording(False)
    try:
        total = _norm(_core.stack([_norm(p.grad, kind) for p in owners]), kind)
        if error_if_nonfinite and not abs(float(total)) < float("inf"):
            raise RuntimeError(f"clip_grad_norm_: the gradients' total norm is {float(total)}")
        scale = min(1.0, max_norm / (float(total) + 1e-6)) if float(total) == float(total) else float("nan")
        for p in owners:
            _core.scale_(p.grad, scale)
        return total
    finally:
        _core.set_recording(recording)


def clip_grad_value_(parameters, clip_value):
    """Clips every element of the gradients into [-clip_value, clip_value]."""
    limit = float(clip_value)
    recording = _core.set_recording(False)
    try:
        for p in _list(parameters):
            if p.grad is not None:
                _core.clip_(p.grad, -limit, limit)
    finally:
        _core.set_recording(recording)
