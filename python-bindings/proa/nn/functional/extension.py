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
