"""paddle.incubate.nn.memory_efficient_attention: tiled attention under a mask that is known by its form."""
from ... import _core
from .attn_bias import (AttentionBias, BlockDiagonalCausalMask, BlockDiagonalCausalWithOffsetPaddedKeysMask, BlockDiagonalMask,
                        LowerTriangularMask, LowerTriangularMaskWithTensorBias, _Blocks)
from .quantized import of_dtype

__all__ = ["memory_efficient_attention"]

SUPPORTED_ATTN_BIAS_TYPES = {type(None), _core.Tensor, LowerTriangularMask, LowerTriangularMaskWithTensorBias, BlockDiagonalMask,
                             BlockDiagonalCausalMask, BlockDiagonalCausalWithOffsetPaddedKeysMask}


def memory_efficient_attention(query, key, value, attn_bias=None, p=0.0, scale=None, training=True):
    """softmax(query · key · scale + attn_bias) · value of [batch, length, heads, D], with dropout p on the weights. attn_bias is a
    tensor or one of paddle.incubate.nn.attn_bias; blocks are computed one sequence at a time.

    >>> x = paddle.ones([1, 2, 1, 4])
    >>> paddle.incubate.nn.memory_efficient_attention.memory_efficient_attention(x, x, x).tolist()
    [[[[1.0, 1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0, 1.0]]]]
    """
    if not isinstance(attn_bias, (type(None), _core.Tensor, AttentionBias)):
        raise AssertionError("memory_efficient_attention: attn_bias: expected None, a Tensor or a mask of attn_bias, got"
                             f" {type(attn_bias).__name__}")
    if scale is not None and scale > 0:
        query = query * (scale * query.shape[3] ** 0.5)
    if not isinstance(attn_bias, _Blocks):
        causal = isinstance(attn_bias, LowerTriangularMask)
        extra = attn_bias._bias if isinstance(attn_bias, LowerTriangularMaskWithTensorBias) else None if causal else attn_bias
        return _attention(query, key, value, extra, 0 if causal else None, p, training)
    parts = [_attention(query[:, q0:q1], key[:, k0:k1], value[:, k0:k1], None, offset, p, training)
             for (q0, q1), (k0, k1), offset in attn_bias.blocks()]
    return _core.concat(parts, 1)


def _attention(query, key, value, bias, offset, p, training):
    """Attention of which query i sees the keys up to i + offset, or all if that is None."""
    queries, keys = query.shape[1], key.shape[1]
    causal = offset is not None and bias is None and offset == keys - queries
    if offset is not None and not causal:
        far = _core.full([queries, keys], float("-inf"), query.dtype)
        triangle = _core.triu(far, 1 + offset)
        bias = triangle if bias is None else bias + triangle
    if bias is not None:
        bias = of_dtype(bias, query.dtype)
    return _core.scaled_dot_product_attention(query, key, value, bias, p, causal, training)[0]
