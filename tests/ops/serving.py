"""References in float64 for attention with caches: one sequence and one head at a time, from the documented formulas."""
import numpy as np


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, bias=0.0):
    """softmax(q · kᵀ / √D + bias) · v of q [S, D] over k and v [T, D]."""
    return softmax(q @ k.T / np.sqrt(q.shape[-1]) + bias) @ v


def causal(queries, keys):
    """0 where query i sees key j ≤ i + keys − queries, else −1e30."""
    return np.where(np.arange(keys)[None] <= np.arange(queries)[:, None] + keys - queries, 0.0, -1e30)


def rotate(x, angle, by_pairs):
    """x [..., D] turned by angle [..., D / 2], of neighbors or of halves, as complex numbers."""
    half = x.shape[-1] // 2
    z = x[..., ::2] + 1j * x[..., 1::2] if by_pairs else x[..., :half] + 1j * x[..., half:]
    z = z * np.exp(1j * angle)
    return np.stack([z.real, z.imag], -1).reshape(x.shape) if by_pairs else np.concatenate([z.real, z.imag], -1)


def eight_bits(x, round_type, high, low):
    """x rounded to even (0) or away from zero, cut to [low, high]."""
    whole = np.rint(x) if round_type == 0 else np.sign(x) * np.floor(np.abs(x) + 0.5)
    return np.clip(whole, low, high)
