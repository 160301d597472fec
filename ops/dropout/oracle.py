"""dropout in real Paddle, only where the result is not random: p is 0 or 1, or inference. One function per op, named
as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors, and saves the outputs
that it returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
from paddle import _C_ops


def dropout(x, p=0.5, axis=(), training=True, mode="upscale_in_train", seed=0, fix_seed=False):
    wire = "downgrade_in_infer" if mode == "downscale_in_infer" else mode
    out, mask = _C_ops.dropout(x, None, p, not training, wire, 0, False)
    return out, (mask if training else None)
