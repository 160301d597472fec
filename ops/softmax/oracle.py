"""softmax and log_softmax in real Paddle. One function per op, named as the op: tests/ops/run_matrix.py calls it
with the op's fields, tensors as Paddle tensors, and saves the outputs that it returns, in the op table's order
(None: not compared), for tests/ops/test_ops.py."""
import paddle


def softmax(x, axis=-1):
    return paddle.nn.functional.softmax(x, axis=axis)


def log_softmax(x, axis=-1):
    return paddle.nn.functional.log_softmax(x, axis=axis)
