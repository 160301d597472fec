"""ctc_loss, hsigmoid_loss, gather_tree and sequence_mask in real Paddle. One function per op, named as the op:
tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors, and saves the outputs that it
returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
import paddle


def ctc_loss(logits, label, logits_length, label_length, blank=0, norm_by_times=False):
    return paddle._C_ops.warpctc(logits, label, logits_length, label_length, blank, norm_by_times)


def hsigmoid_loss(x, label, w, bias=None, path_table=None, path_code=None, num_classes=2):
    return paddle.nn.functional.hsigmoid_loss(x, label, num_classes, w, bias, path_table, path_code)


def gather_tree(ids, parents):
    return paddle.nn.functional.gather_tree(ids, parents)


def sequence_mask(x, maxlen=-1, dtype="I64"):
    dtype = {"BOOL": "bool", "F32": "float32"}.get(dtype, "int64")
    return paddle.nn.functional.sequence_mask(x, None if maxlen < 0 else maxlen, dtype)
