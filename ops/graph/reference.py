"""NumPy references of message passing along a graph's edges (graph_send_recv, graph_send_ue_recv) and of
segment_pool. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as
NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None: not
compared)."""
import numpy as np


def _reduced(messages, index, op, rows):
    out = np.zeros((rows, *messages.shape[1:]), messages.dtype)
    counts = np.bincount(index, minlength=rows)[:rows]
    for row in range(rows):
        own = messages[index == row]
        if len(own):
            how = {"SUM": np.sum, "MEAN": np.mean, "MAX": np.max, "MIN": np.min}[op]
            out[row] = how(own, 0).astype(messages.dtype)
    return out, counts


def graph_send_recv(x, src_index, dst_index, reduce_op="SUM", out_size=(0,)):
    out, counts = _reduced(x[src_index], dst_index, reduce_op, out_size[0] or len(x))
    return (out, counts.astype("int32")) if reduce_op == "MEAN" else (out, None)


def graph_send_ue_recv(x, y, src_index, dst_index, message_op="ADD", reduce_op="SUM", out_size=(0,)):
    rows, x = out_size[0] or len(x), x[src_index]
    ndim = max(x.ndim, y.ndim)
    x, y = (t.reshape(len(t), *[1] * (ndim - t.ndim), *t.shape[1:]) for t in (x, y))
    messages = x + y if message_op == "ADD" else x * y
    out, counts = _reduced(messages, dst_index, reduce_op, rows)
    return (out, counts.astype("int32")) if reduce_op == "MEAN" else (out, None)


def segment_pool(x, segment_ids, pooltype="SUM"):
    out, counts = _reduced(x, segment_ids, pooltype, int(segment_ids.max()) + 1)
    return (out, counts.astype(x.dtype)[:, None]) if pooltype == "MEAN" else (out, None)
