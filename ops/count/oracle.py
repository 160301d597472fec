"""histogram and bincount in real Paddle. One function per op, named as the op: tests/ops/run_matrix.py calls it with
the op's fields, tensors as Paddle tensors, and saves the outputs that it returns, in the op table's order (None: not
compared), for tests/ops/test_ops.py."""
from paddle import bincount, histogram  # noqa: F401
