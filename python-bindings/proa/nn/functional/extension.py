"""Masks and beams."""
from ... import _core


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    """For each length in x a row of maxlen (default: the longest) values: 1 below the length, else 0.

    >>> paddle.nn.functional.sequence_mask(paddle.to_tensor([1, 3]), maxlen=3).tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    if isinstance(maxlen, _core.Tensor):
        maxlen = int(maxlen)
    if maxlen is None:
        maxlen = int(_core.max(x))
    steps = _core.arange(0, maxlen, 1, x.dtype)
    mask = _core.cast(steps < _core.unsqueeze(x.detach(), -1), dtype)
    mask.stop_gradient = True
    return mask


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices, on axes dim1 and dim2, with input's last axis on a diagonal and zeros elsewhere."""
    x, n, ndim = input, input.shape[-1], input.ndim + 1
    rows, columns = dim1 % ndim, dim2 % ndim
    if not (-ndim <= dim1 < ndim and -ndim <= dim2 < ndim) or rows == columns:
        raise ValueError(f"diag_embed: dim1 and dim2 must be two of {ndim} axes, got {dim1} and {dim2}")
    eye = _core.cast(_core.eye(n, n, "int32"), "bool")
    out = _core.where(eye, _core.unsqueeze(x, -1), _core.full([1], 0, x.dtype))
    if offset:
        before, after = ([0, offset], [offset, 0]) if offset > 0 else ([-offset, 0], [0, -offset])
        out = _core.pad(out, [0] * (2 * ndim - 4) + before + after, 0.0)
    order = list(range(ndim - 2))
    for place, axis in sorted(((rows, ndim - 2), (columns, ndim - 1))):
        order.insert(place, axis)
    return out if order == list(range(ndim)) else _core.transpose(out, order)
