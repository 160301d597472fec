"""Message passing along a graph's edges (graph_send_recv, graph_send_ue_recv) and segment_pool in real Paddle. One
function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors,
and saves the outputs that it returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
import paddle


def graph_send_recv(x, src_index, dst_index, reduce_op="SUM", out_size=(0,)):
    return paddle.geometric.send_u_recv(x, src_index, dst_index, reduce_op.lower(), out_size[0] or None)


def graph_send_ue_recv(x, y, src_index, dst_index, message_op="ADD", reduce_op="SUM", out_size=(0,)):
    return paddle.geometric.send_ue_recv(x, y, src_index, dst_index, message_op.lower(), reduce_op.lower(),
                                         out_size[0] or None)


def segment_pool(x, segment_ids, pooltype="SUM"):
    return getattr(paddle.geometric, "segment_" + pooltype.lower())(x, segment_ids)
