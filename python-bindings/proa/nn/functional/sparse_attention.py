"""Attention on the pairs of positions that a CSR pattern names."""
from ... import _core

__all__ = []


def sparse_attention(query, key, value, sparse_csr_offset, sparse_csr_columns, key_padding_mask=None, attn_mask=None,
                     name=None):
    """softmax(query · keyᵀ / sqrt(D)) · value over the pairs that the pattern names, a head: query, key, value [B, H, S, D],
    sparse_csr_offset [B, H, S + 1], sparse_csr_columns [B, H, pairs]. A position is left out where key_padding_mask [B, S] or
    attn_mask [S, S] is 0; a row that has no pair left is 0. The weights are computed as a dense [B, H, S, S].

    >>> x = paddle.to_tensor([[[[1.0], [2.0]]]])
    >>> offset = paddle.to_tensor([[[0, 1, 2]]], dtype="int32")
    >>> columns = paddle.to_tensor([[[1, 1]]], dtype="int32")
    >>> paddle.nn.functional.sparse_attention(x, x, x, offset, columns).flatten().tolist()
    [2.0, 2.0]
    """
    for what, one in (("query", query), ("key", key), ("value", value)):
        if one.ndim != 4:
            raise ValueError(f"sparse_attention: {what} must be [batch, heads, length, depth], got {one.shape}")
    _, _, length, depth = query.shape
    taken = _dense(sparse_csr_offset, sparse_csr_columns, length)
    if key_padding_mask is not None:
        taken = taken.logical_and(_core.unsqueeze(key_padding_mask, [1, 2]) != 0)
    if attn_mask is not None:
        taken = taken.logical_and(attn_mask != 0)
    scores = _core.matmul(query * depth ** -0.5, key, False, True)
    weights = _core.softmax(_core.where(taken, scores, _core.full_like(scores, -1e30)), -1)
    return _core.matmul(weights * _core.cast(taken, weights.dtype), value)


def _dense(offset, columns, length):
    """True [B, H, S, S] where the pattern has a pair. Columns behind a head's last offset are padding: a row of their own."""
    batch, heads, pairs = columns.shape
    heads_all = batch * heads
    offset = _core.reshape(_core.cast(offset, "int64"), [heads_all, length + 1])
    columns = _core.reshape(_core.cast(columns, "int64"), [heads_all, pairs])
    ends = _core.slice(offset, [1], [1], [length + 1])
    each = _core.expand(_core.arange(0, pairs, 1, "int64"), [heads_all, pairs])
    rows = _core.searchsorted(ends, each, False, True)
    found = _core.put_along_axis(_core.full([heads_all, (length + 1) * length], 0.0, "float32"), rows * length + columns,
                                 _core.full([heads_all, pairs], 1.0, "float32"), 1, "assign")
    found = _core.slice(found, [1], [0], [length * length])
    return _core.reshape(found, [batch, heads, length, length]) != 0
