"""NumPy reference of attention."""
import numpy as np
from scipy.special import logsumexp


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, training=True):
    group = query.shape[2] // max(key.shape[2], 1)
    q = np.swapaxes(query, 1, 2).astype(np.float64)
    k, v = (np.repeat(np.swapaxes(t, 1, 2).astype(np.float64), group, axis=1) for t in (key, value))
    scores = q @ np.swapaxes(k, 2, 3) / np.sqrt(max(query.shape[3], 1))
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        sq, sk = scores.shape[2:]
        scores = np.where(np.arange(sk) > np.arange(sq)[:, None] + sk - sq, -np.inf, scores)
    if scores.shape[3] == 0:
        return np.zeros(query.shape[:3] + value.shape[3:], query.dtype), np.zeros(scores.shape[:3]), None
    lse = logsumexp(scores, axis=-1)
    weights = np.exp(scores - lse[..., None])
    return np.swapaxes(weights @ v, 1, 2).astype(query.dtype), lse.astype(np.promote_types(query.dtype, np.float32)), None
