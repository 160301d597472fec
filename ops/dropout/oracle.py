"""Dropout in real Paddle, in the cases without randomness."""
from paddle import _C_ops


def dropout(x, p=0.5, axis=(), training=True, mode="upscale_in_train", seed=0, fix_seed=False):
    wire = "downgrade_in_infer" if mode == "downscale_in_infer" else mode
    out, mask = _C_ops.dropout(x, None, p, not training, wire, 0, False)
    return out, (mask if training else None)
