"""NumPy references of scaled_dot_product_attention and its gradient, without dropout, which is random. One function
per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares
Proa's outputs with the outputs that it returns, in the op table's order (None: not compared)."""
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


def scaled_dot_product_attention_grad(query, key, value, attn_mask, out, softmax_lse, seed_offset, d_out,
                                      dropout_p=0.0, is_causal=False):
    """With P the softmax weights and S the scores: dV = Pᵀ dO, dS = P ∘ (dO Vᵀ − rowsum(dO ∘ O)), dQ = dS K / √D, dK = dSᵀ Q / √D."""
    group = query.shape[2] // max(key.shape[2], 1)
    q, o, d = (np.swapaxes(t, 1, 2).astype(np.float64) for t in (query, out, d_out))
    k, v = (np.repeat(np.swapaxes(t, 1, 2).astype(np.float64), group, axis=1) for t in (key, value))
    factor = 1 / np.sqrt(max(query.shape[3], 1))
    scores = factor * (q @ np.swapaxes(k, 2, 3))
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        sq, sk = scores.shape[2:]
        scores = np.where(np.arange(sk) > np.arange(sq)[:, None] + sk - sq, -np.inf, scores)
    weights = np.exp(scores - logsumexp(scores, axis=-1, keepdims=True))
    d_scores = weights * (d @ np.swapaxes(v, 2, 3) - (d * o).sum(-1, keepdims=True))
    d_q, d_k, d_v = factor * d_scores @ k, factor * np.swapaxes(d_scores, 2, 3) @ q, np.swapaxes(weights, 2, 3) @ d
    d_k, d_v = (t.reshape(t.shape[0], -1, group, *t.shape[2:]).sum(2) for t in (d_k, d_v))
    return [np.swapaxes(t, 1, 2).astype(query.dtype) for t in (d_q, d_k, d_v)]
