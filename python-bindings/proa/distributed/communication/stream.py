"""paddle.distributed.stream: the collectives with use_calc_stream, false by default, so that they return a task; alltoall takes
its results first."""
from .. import communication as _c
from . import ReduceOp


def all_reduce(tensor, op=ReduceOp.SUM, group=None, sync_op=True, use_calc_stream=False):
    """The reduction of the ranks' tensors, in place on every rank."""
    return _c.all_reduce(tensor, op, group, sync_op, use_calc_stream)


def reduce(tensor, dst=0, op=ReduceOp.SUM, group=None, sync_op=True, use_calc_stream=False):
    """The reduction in place on rank dst."""
    return _c.reduce(tensor, dst, op, group, sync_op, use_calc_stream)


def broadcast(tensor, src, group=None, sync_op=True, use_calc_stream=False):
    """Rank src's tensor, in place on every rank."""
    return _c.broadcast(tensor, src, group, sync_op, use_calc_stream)


def all_gather(tensor_or_tensor_list, tensor, group=None, sync_op=True, use_calc_stream=False):
    """The ranks' tensors, in a list or one behind the other in a tensor."""
    return _c.all_gather(tensor_or_tensor_list, tensor, group, sync_op, use_calc_stream)


def gather(tensor, gather_list=None, dst=0, group=None, sync_op=True, use_calc_stream=False):
    """The ranks' tensors, in a list on rank dst."""
    return _c.gather(tensor, gather_list, dst, group, sync_op, use_calc_stream)


def scatter(tensor, tensor_or_tensor_list=None, src=0, group=None, sync_op=True, use_calc_stream=False):
    """Part r of rank src's list or tensor on rank r, in place of tensor."""
    return _c.scatter(tensor, tensor_or_tensor_list, src, group, sync_op, use_calc_stream)


def reduce_scatter(tensor, tensor_or_tensor_list, op=ReduceOp.SUM, group=None, sync_op=True, use_calc_stream=False):
    """The reduction of the ranks' part r, on rank r in place of tensor."""
    return _c.reduce_scatter(tensor, tensor_or_tensor_list, op, group, sync_op, use_calc_stream)


def alltoall(out_tensor_or_tensor_list, in_tensor_or_tensor_list, group=None, sync_op=True, use_calc_stream=False):
    """Part r of what goes in to rank r; what came, in the order of ranks."""
    return _c.alltoall(in_tensor_or_tensor_list, out_tensor_or_tensor_list, group, sync_op, use_calc_stream)


def alltoall_single(out_tensor, in_tensor, out_split_sizes=None, in_split_sizes=None, group=None, sync_op=True,
                    use_calc_stream=False):
    """Rows of in_tensor to each rank; what came, in out_tensor."""
    return _c.alltoall_single(in_tensor, out_tensor, in_split_sizes, out_split_sizes, group, sync_op, use_calc_stream)


def send(tensor, dst=0, group=None, sync_op=True, use_calc_stream=False):
    """tensor to rank dst, which calls recv."""
    return _c.send(tensor, dst, group, sync_op, use_calc_stream)


def recv(tensor, src=0, group=None, sync_op=True, use_calc_stream=False):
    """Receives the message of rank src into tensor."""
    return _c.recv(tensor, src, group, sync_op, use_calc_stream)


__all__ = ["all_gather", "all_reduce", "alltoall", "alltoall_single", "broadcast", "gather", "recv", "reduce", "reduce_scatter",
           "scatter", "send"]
