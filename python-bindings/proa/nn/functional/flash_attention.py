"""Scaled dot-product attention under the names of Paddle's flash_attention module."""
from ... import _core
from ..._asks import asks


@asks("eager:attn_mask:Tensor,None!InvalidArgument query.shape query[3]")
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, training=True,
                                 name=None):
    """softmax(query · key / sqrt(D) + attn_mask) · value, a head: query [B, Sq, H, D], key and value [B, Sk, H, D]."""
    return _core.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, training)[0]


def flash_attention(query, key, value, dropout=0.0, causal=False, return_softmax=False, *, fixed_seed_offset=None,
                    rng_name="", training=True, name=None):
    """(attention, None): scaled_dot_product_attention under the name of its fused kernel; weights are never kept."""
    if return_softmax:
        raise ValueError("flash_attention: return_softmax must be False, the weights are never stored")
    out = _core.scaled_dot_product_attention(query, key, value, None, dropout, causal, training)[0]
    return out, None
