"""embedding (rows of a table, by index) in real Paddle. One function per op, named as the op:
tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors, and saves the outputs that it
returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
import paddle


def embedding(x, weight, padding_idx=-1, sparse=False):
    return paddle.nn.functional.embedding(x, weight, padding_idx=None if padding_idx == -1 else padding_idx, sparse=sparse)
