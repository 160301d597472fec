"""NumPy references of dropout and gelu_dropout where nothing is random (p is 0 or 1, or inference), and of their
gradients, which read the mask. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's
fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's
order (None: not compared)."""
import numpy as np
from scipy import special


def dropout(x, p=0.5, axis=(), training=True, mode="upscale_in_train", seed=0, fix_seed=False):
    if not training:
        return (x * (1 - p) if mode == "downscale_in_infer" else x), None
    assert p in (0, 1), "random: compared by statistics instead"
    return x * (1 - p), np.full(x.shape, 1 - p, np.uint8)


def dropout_grad(mask, d_out, p=0.5, axis=(), training=True, mode="upscale_in_train"):
    scale = 1 if mode == "downscale_in_infer" else 0 if p == 1 else 1 / (1 - p)
    return d_out * mask * scale


def _gelu(x, approximate):
    """(gelu(x), its derivative), in float64."""
    x = np.asarray(x, np.float64)
    if approximate:
        inner, slope = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3), np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
        t = np.tanh(inner)
        return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope
    phi = special.ndtr(x)
    return x * phi, phi + x * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def gelu_dropout(x, approximate=False, p=0.5, mode="upscale_in_train", seed=0, fix_seed=False):
    out, mask = dropout(_gelu(x, approximate)[0], p, mode=mode)
    return out.astype(x.dtype), mask


def gelu_dropout_grad(x, mask, d_out, approximate=False, p=0.5, mode="upscale_in_train"):
    y, slope = _gelu(x, approximate)
    return (dropout_grad(mask, d_out, p, mode=mode) * slope).astype(x.dtype), dropout_grad(mask, y, p, mode=mode).astype(x.dtype)
