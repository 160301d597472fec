"""NumPy references of loss scaling: check_finite_and_unscale and update_loss_scaling. One function per op, named as
the op: tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares Proa's outputs
with the outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np


def check_finite_and_unscale(xs, scale):
    factor = 1 / scale.reshape(-1)[0]
    found = any(not np.all(np.isfinite(x)) for x in xs)
    return [(x * factor).astype(x.dtype) for x in xs], np.array([found])


def update_loss_scaling(xs, found_infinite, loss_scaling, good_steps, bad_steps, stop=None, incr_every_n_steps=1,
                        decr_every_n_nan_or_inf=1, incr_ratio=2.0, decr_ratio=0.5, stop_update=False):
    found = bool(found_infinite.reshape(-1)[0])
    if found:
        xs = [np.zeros_like(x) for x in xs]
    if stop_update or (stop is not None and stop.reshape(-1)[0]):
        return xs, loss_scaling, good_steps, bad_steps
    if found:
        good, bad = good_steps * 0, bad_steps + 1
        if bad.reshape(-1)[0] == decr_every_n_nan_or_inf:
            loss_scaling, bad = np.maximum(loss_scaling * decr_ratio, 1).astype(loss_scaling.dtype), bad * 0
    else:
        good, bad = good_steps + 1, bad_steps * 0
        if good.reshape(-1)[0] == incr_every_n_steps:
            loss_scaling, good = (loss_scaling * incr_ratio).astype(loss_scaling.dtype), good * 0
    return xs, loss_scaling, good, bad
