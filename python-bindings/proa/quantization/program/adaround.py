"""AdaRound (Nagel et al., 2020): whether a weight is rounded up or down is learned, so that its operator's results on samples
stay as they were."""
import math

from .rewrite import integers
from .slots import transposed

__all__ = ["learned_integers"]

STEPS = 300  # of Adam, for each weight
_LOW, _HIGH = -0.1, 1.1  # ends of the sigmoid before it is cut to 0 … 1
_PENALTY, _WARM = 0.01, 0.1  # factor of what pulls towards 0 and 1, and the share of steps without it


class _eagerly:
    """Runs eagerly, also while programs are built."""

    def __enter__(self):
        import proa
        self.was = proa.in_dynamic_mode()
        proa.disable_static()

    def __exit__(self, *error):
        import proa
        if not self.was:
            proa.enable_static()


def _applied(op, x, w):
    """The operator's result, without its bias."""
    import proa
    F = proa.nn.functional
    if op.type == "mul":
        columns = op.attr("x_num_col_dims", 1)
        rows = math.prod(x.shape[:columns])
        return proa.matmul(x.reshape([rows, -1]), w)
    if op.type in ("matmul", "matmul_v2"):
        return proa.matmul(x, w, bool(op.attr("trans_x", op.attr("transpose_X", False))), transposed(op))
    algorithm = op.attr("padding_algorithm", "EXPLICIT")
    padding = op.attr("paddings", [0, 0]) if algorithm == "EXPLICIT" else algorithm
    options = {"stride": op.attr("strides", [1, 1]), "padding": padding, "dilation": op.attr("dilations", [1, 1]),
               "groups": op.attr("groups", 1) or 1}
    layout = op.attr("data_format", "NCHW")
    layout = "NHWC" if layout == "NHWC" else "NCHW"
    if op.type == "conv2d_transpose":
        extra = op.attr("output_padding", []) or 0
        return F.conv2d_transpose(x, w, None, output_padding=extra, data_format=layout, **options)
    return F.conv2d(x, w, None, data_format=layout, **options)


def _beta(i):
    """The exponent of the penalty at step i: from 20 to 2 by a cosine."""
    return 2 + 9 * (1 + math.cos(math.pi * (i - _WARM * STEPS) / (STEPS - _WARM * STEPS)))


def learned_integers(op, weight, scale, axis, bits, batches, rate, even=False):
    """A weight's integers, as floats, by arrays of what the operator reads. The nearest ones where those do no better."""
    import numpy as np

    import proa
    n = float(2 ** (bits - 1) - 1)
    step = (scale.reshape([-1 if d == axis else 1 for d in range(weight.ndim)]) if scale.size > 1 else scale) / np.float32(n)
    nearest = integers(weight, scale, axis, bits, even)
    low = np.floor(weight.astype(np.float32) / step)
    part = np.clip(weight / step - low, 1e-4, 1 - 1e-4)
    with _eagerly():
        chosen = proa.to_tensor(-np.log((_HIGH - _LOW) / (part - _LOW) - 1).astype(np.float32), stop_gradient=False)
        optimizer = proa.optimizer.Adam(rate, parameters=[chosen])
        floor, unit = proa.to_tensor(low), proa.to_tensor(np.broadcast_to(step, weight.shape).astype(np.float32).copy())
        inputs = [proa.to_tensor(x.astype(np.float32)) for x in batches]
        wanted = [_applied(op, x, proa.to_tensor(weight.astype(np.float32))) for x in inputs]
        for i in range(STEPS):
            up = (proa.nn.functional.sigmoid(chosen) * (_HIGH - _LOW) + _LOW).clip(0, 1)
            at = i % len(inputs)
            loss = (_applied(op, inputs[at], (floor + up) * unit) - wanted[at]).square().sum(-1).mean()
            if i >= _WARM * STEPS:
                loss = loss + _PENALTY * (1 - (2 * up - 1).abs() ** _beta(i)).sum()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        learned = np.clip(low + (chosen.numpy() >= 0), -n - 1 if even else -n, n)

        def error(q):
            w = proa.to_tensor((q * step).astype(np.float32))
            return sum(float((_applied(op, x, w) - y).square().sum()) for x, y in zip(inputs, wanted))
        return learned if error(learned) < error(nearest) else nearest
