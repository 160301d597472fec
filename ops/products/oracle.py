"""cross, kron and renorm in real Paddle. One function per op, named as the op: tests/ops/run_matrix.py calls it with
the op's fields, tensors as Paddle tensors, and saves the outputs that it returns, in the op table's order (None: not
compared), for tests/ops/test_ops.py."""
import paddle
from paddle import cross, kron  # noqa: F401


def renorm(x, p, axis, max_norm):
    return paddle.renorm(x, p, axis, max_norm)
