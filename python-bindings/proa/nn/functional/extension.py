"""Masks and beams."""
from ... import _core


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    """For each length in x a row of maxlen (default: the longest) values: 1 below the length, else 0."""
    if isinstance(maxlen, _core.Tensor):
        maxlen = int(maxlen)
    if maxlen is None:
        maxlen = int(_core.max(x))
    steps = _core.arange(0, maxlen, 1, x.dtype)
    mask = _core.cast(steps < _core.unsqueeze(x.detach(), -1), dtype)
    mask.stop_gradient = True
    return mask


def gather_tree(ids, parents):
    """The token sequences of a beam search [time, batch, beam], followed back from the last step."""
    if ids.ndim != 3 or parents.ndim != 3:
        raise ValueError(f"gather_tree: ids and parents must be [time, batch, beam], got shapes {ids.shape} and "
                         f"{parents.shape}")
    return _core.gather_tree(ids, parents)
