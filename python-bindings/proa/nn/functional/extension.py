"""sequence_mask, and gather_tree (paths of a beam search)."""
from ... import _core
from ..._asks import asks
from ..._errors import of_kind


@asks("eager:x:Tensor!InvalidArgument static:x:Tensor eager:maxlen:int,Tensor,None!InvalidArgument static:x>>i4,i8,f4,f8")
def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    """For each length in x a row of maxlen (default: the longest) values: 1 below the length, else 0.

    >>> paddle.nn.functional.sequence_mask(paddle.to_tensor([1, 3]), maxlen=3).tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    if isinstance(maxlen, complex):
        raise of_kind(f"sequence_mask: maxlen must be an int, got {maxlen}")
    if x.dtype not in (_core.int32, _core.int64):
        x = _core.cast(_core.ceil(x.detach()), _core.int64)
    return _core.sequence_mask(x, -1 if maxlen is None else maxlen, dtype)


@asks("ids.ndim ids#3")
def gather_tree(ids, parents):
    """The token sequences of a beam search [time, batch, beam], followed back from the last step."""
    if ids.ndim != 3 or parents.ndim != 3:
        raise ValueError(f"gather_tree: ids and parents must be [time, batch, beam], got shapes {ids.shape} and "
                         f"{parents.shape}")
    return _core.gather_tree(ids, parents)

