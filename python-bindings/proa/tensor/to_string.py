"""Tensors as text, the way Paddle prints them, and set_printoptions."""
from .. import _core
from ._tools import dtype_name

__all__ = ["set_printoptions"]

_options = {"precision": 8, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": False}


def set_printoptions(precision=None, threshold=None, edgeitems=None, sci_mode=None, linewidth=None):
    """Sets how tensors print: digits, elements before a summary, elements at each end of one, line width."""
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth,
             "sci_mode": sci_mode}
    for key, value in given.items():
        kind = bool if key == "sci_mode" else int
        if value is not None and not isinstance(value, kind):
            error = TypeError if _core.is_capturing() else RuntimeError
            raise error(f"set_printoptions: {key} must be of type {kind.__name__}, got {type(value).__name__}")
    _options.update((key, value) for key, value in given.items() if value is not None)


def _item(value):
    if value.dtype.kind != "f":
        return str(value)
    if _options["sci_mode"]:
        return f"{value:.{_options['precision']}e}"
    if value == value.round():  # infinities too
        return f"{value:.0f}."
    return f"{value:.{_options['precision']}f}"


def _ends(array):
    """The part of array that a summary shows, as a smaller array."""
    import numpy as np
    edge = _options["edgeitems"]
    for axis, n in enumerate(array.shape):
        if n > 2 * edge:
            array = np.concatenate([array.take(range(edge), axis), array.take(range(n - edge, n), axis)], axis)
    return array


def _fit(value, width, signed):
    text = _item(value)
    if width > len(text):
        return text.ljust(width) if not signed or value < 0 else " " + text.ljust(width - 1)
    return text


def _rows(array, summary, indent, width, signed):
    if array.ndim == 0:
        return _fit(array[()], width, signed)
    edge, n = _options["edgeitems"], array.shape[0]
    short = summary and n > 2 * edge
    picks = [*range(edge), *range(n - edge, n)] if short else range(n)
    if array.ndim == 1:
        parts = [_fit(array[i], width, signed) for i in picks]
    else:
        parts = [_rows(array[i], summary, indent + 1, width, signed) for i in picks]
    if short:
        parts.insert(edge, "...")
    if array.ndim > 1:
        return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"
    a_line = max(1, (_options["linewidth"] - indent) // (width + 2))
    lines = [", ".join(parts[i:i + a_line]) for i in range(0, len(parts), a_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def tensor_to_string(tensor, prefix="Tensor"):
    """The text that repr(tensor) and print(tensor) show."""
    if tensor.is_symbolic:
        from ..jit.dy2static.runtime.values import text_is_asked
        from ..static.variable import text_of
        text_is_asked(tensor)
        return text_of(tensor)
    kind = dtype_name(tensor.dtype)
    if _core.is_rows(tensor):
        values = tensor_to_string(_core.rows_values(tensor), prefix)
        return f"SelectedRows(height={_core.rows_height(tensor)}, rows={tensor.rows()}, values=\n{values})"
    plain = tensor.detach()
    array = (plain.astype("float32") if kind == "bfloat16" else plain).numpy()
    shape = list(tensor.shape)
    summary = bool(shape) and array.size > _options["threshold"]
    shown = _ends(array).ravel() if array.size else array.ravel()
    width = max((len(_item(v)) for v in shown), default=0)
    signed = any(v < 0 for v in shown)
    indent = len(prefix) + 1
    data = _rows(array, summary, indent, width, signed)
    return (f"{prefix}(shape={shape}, dtype={kind}, place={tensor.place}, stop_gradient={tensor.stop_gradient},\n"
            f"{' ' * indent}{data})")
