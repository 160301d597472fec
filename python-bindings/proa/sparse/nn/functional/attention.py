"""Attention where a sparse mask says which queries see which keys."""
import math

from ...._asks import asks
from .... import _core
from ... import masked_matmul, matmul
from ...tensor import SparseCsrTensor
from .activation import softmax


@asks("eager:query:Tensor!InvalidArgument eager:key:Tensor!InvalidArgument eager:value:Tensor!InvalidArgument")
def attention(query, key, value, sparse_mask, key_padding_mask=None, attn_mask=None, name=None):
    """softmax(query·keyᵀ / √d)·value of [batch, heads, n, d] tensors, over the entries of sparse_mask, a CSR tensor
    [batch·heads, n, n]. key_padding_mask [batch, n] and attn_mask [n, n] are added to the scores."""
    if isinstance(sparse_mask, _core.Tensor) and not isinstance(sparse_mask, SparseCsrTensor):
        raise NotImplementedError("(Unimplemented) attention: sparse_mask must be a CSR Tensor, got another one")
    if not isinstance(sparse_mask, SparseCsrTensor):
        raise TypeError(f"attention: sparse_mask must be a CSR Tensor, got {type(sparse_mask).__name__}")
    batch, heads, n, d = query.shape
    q, k, v = (_core.reshape(t, [batch * heads, n, d]) for t in (query, key, value))
    scores = masked_matmul(_core.scale(q, 1 / math.sqrt(d)), _core.transpose(k, [0, 2, 1]), sparse_mask)
    of, row, column = scores.to_sparse_coo()._indices
    values = scores.values()
    if key_padding_mask is not None:
        flat = _core.reshape(key_padding_mask, [-1])
        values = _core.add(values, _core.gather(flat, _core.to_tensor(of // heads * n + column)))
    if attn_mask is not None:
        values = _core.add(values, _core.gather(_core.reshape(attn_mask, [-1]), _core.to_tensor(row * n + column)))
    return _core.reshape(matmul(softmax(scores.with_values(values)), v), [batch, heads, n, d])
