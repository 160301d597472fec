"""NumPy references of dropout where it is not random."""
import numpy as np


def dropout(x, p=0.5, axis=(), training=True, mode="upscale_in_train", seed=0, fix_seed=False):
    if not training:
        return (x * (1 - p) if mode == "downscale_in_infer" else x), None
    assert p in (0, 1), "random: compared by statistics instead"
    return x * (1 - p), np.full(x.shape, 1 - p, np.uint8)


def dropout_grad(mask, d_out, p=0.5, axis=(), training=True, mode="upscale_in_train"):
    scale = 1 if mode == "downscale_in_infer" else 0 if p == 1 else 1 / (1 - p)
    return d_out * mask * scale
