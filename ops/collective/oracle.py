"""mp_embedding (embedding look-up in one rank's slice of a table) in real Paddle, whose other collectives need
several processes. One function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields,
tensors as Paddle tensors, and saves the outputs that it returns, in the op table's order (None: not compared), for
tests/ops/test_ops.py."""
import paddle


def mp_embedding(weight, x, start_index=0, vocab_size=-1):
    return paddle._legacy_C_ops.c_embedding(weight, x, "start_index", start_index)
