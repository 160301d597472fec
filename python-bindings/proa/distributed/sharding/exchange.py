"""Averages gradients over groups of ranks, of which some may have none, or SelectedRows, where others have dense ones."""
import itertools

import numpy as np

from ... import _core
from .. import communication as _c

_MESSAGE, _SMALL = 1 << 21, 1 << 18  # elements: 8 MiB of float32 at a time, so that joining them costs no memory to speak of


def start_equal(tensors, group):
    """Gives every rank of a group its first rank's values."""
    if group.nranks > 1:
        for tensor in tensors:
            _c.broadcast(tensor.detach(), group.ranks[0], group)


def agree_on_gradients(params, groups):
    """Makes gradients of one kind on all ranks of the groups: a parameter that some rank has a gradient of gets zeros where it has
    none; one of which none has any stays without."""
    params = [p for p in params if not p.stop_gradient]
    groups = [group for group in groups if group.nranks > 1]
    if not params or not groups:
        return
    kinds = np.zeros([2, len(params)], "int32")  # dense, rows
    for i, param in enumerate(params):
        if param.grad is not None:
            kinds[int(_core.is_rows(param.grad)), i] = 1
    kinds = _core.to_tensor(kinds)
    for group in groups:
        _c.all_reduce(kinds, _c.ReduceOp.MAX, group)
    for param, dense, rows in zip(params, *kinds.numpy().tolist()):
        if dense and param.grad is not None and _core.is_rows(param.grad):
            param.grad = _core.rows_to_dense(param.grad)
        elif (dense or rows) and param.grad is None:
            param.grad = _core.full_like(param, 0.0) if dense else _no_rows(param)


def _no_rows(param):
    values = _core.full([0, *param.shape[1:]], 0.0, param.dtype)
    return _core.rows_new(_core.full([0], 0, _core.int64), values, param.shape[0])


def average(params, group):
    """Averages gradients, which agree_on_gradients made alike: small ones of a dtype in one message, rows by themselves."""
    if group.nranks < 2:
        return
    small = {}
    for param in params:
        grad = param.grad
        if param.stop_gradient or grad is None:
            continue
        if _core.is_rows(grad):
            param.grad = _joined_rows(grad, group)
        elif int(grad.size) < _SMALL:
            small.setdefault(grad.dtype, []).append(grad)
        else:
            _c.all_reduce(grad, _c.ReduceOp.AVG, group)
    for grads in small.values():
        while grads:
            count = itertools.accumulate(int(g.size) for g in grads)
            some = sum(1 for n in count if n <= _MESSAGE)
            _average_together(grads[:some], group)
            grads = grads[some:]


def _average_together(grads, group):
    joined = _core.concat([g.reshape([-1]) for g in grads])
    _c.all_reduce(joined, _c.ReduceOp.AVG, group)
    at = 0
    for grad in grads:
        n = int(grad.size)
        grad.set_value(joined[at:at + n].reshape(grad.shape))
        at += n


def _joined_rows(grad, group):
    """The rows of all ranks, divided by their number."""
    index, values = _core.rows_index(grad), _core.scale(_core.rows_values(grad), 1.0 / group.nranks)
    counts = []
    _c.all_gather(counts, _core.to_tensor([int(index.size)]), group)
    counts = [int(n) for n in counts]

    def gathered(tensor):
        missing = max(counts) - tensor.shape[0]
        padded = _core.concat([tensor, _core.full([missing, *tensor.shape[1:]], 0, tensor.dtype)]) if missing else tensor
        parts = []
        _c.all_gather(parts, padded, group)
        return _core.concat([part[:n] for part, n in zip(parts, counts)])

    if not max(counts):
        return grad
    return _core.rows_new(gathered(index), gathered(values), _core.rows_height(grad))
