"""The ops that read or write by index or by mask (gather, scatter, index_put, nonzero, unique, …) in real Paddle.
One function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle
tensors, and saves the outputs that it returns, in the op table's order (None: not compared), for
tests/ops/test_ops.py."""
import paddle

from paddle import gather_nd, index_add, index_sample, index_select, masked_fill  # noqa: F401
from paddle import masked_select, nonzero, scatter, scatter_nd_add, take_along_axis  # noqa: F401


def gather(x, index, axis, axis_tensor):
    return paddle.gather(x, index, axis)


def index_put(x, index, value, accumulate):
    indices = [index] if index.dtype == paddle.bool else paddle.unstack(index, -1)
    return paddle.index_put(x, tuple(indices), value, accumulate)


def put_along_axis(arr, indices, values, axis, reduce, include_self, broadcast):
    if broadcast and list(values.shape) != list(indices.shape):
        shape = list(arr.shape)
        shape[axis] = indices.shape[axis]
        indices = paddle.broadcast_to(indices, shape)
        values = paddle.broadcast_to(values, shape)
    reduce = "mul" if reduce == "multiply" else reduce
    return paddle.put_along_axis(arr, indices, values, axis, reduce, include_self, broadcast)


def set_value(x, value, axes, starts, ends, steps, decrease_axes, none_axes):
    out, index = x.clone(), []
    for axis in range(x.ndim):
        if axis not in axes:
            index.append(slice(None))
            continue
        k = list(axes).index(axis)
        cut = slice(starts[k], ends[k], steps[k] if len(steps) else 1)
        index.append(starts[k] if axis in decrease_axes else cut)
    out[tuple(index)] = value
    return out


def unique(x, return_index, return_inverse, return_counts, axis, dtype):
    given = paddle.unique(x, return_index, return_inverse, return_counts, axis[0] if len(axis) else None)
    given = iter(given if isinstance(given, (list, tuple)) else [given])
    return [next(given)] + [next(given) if asked else None for asked in (return_index, return_inverse, return_counts)]


def repeat_interleave(x, repeats_tensor, repeats, axis):
    return paddle.repeat_interleave(x, repeats if repeats_tensor is None else repeats_tensor, axis)


def unique_consecutive(x, return_inverse, return_counts, axis, dtype):
    given = paddle.unique_consecutive(x, return_inverse, return_counts, axis[0] if len(axis) else None,
                                      "int32" if dtype == "I32" else "int64")
    given = iter(given if isinstance(given, (list, tuple)) else [given])
    return [next(given)] + [next(given) if asked else None for asked in (return_inverse, return_counts)]


def multiplex(inputs, index):
    return paddle.multiplex(inputs, index)


def shard_index(input, index_num, nshards, shard_id, ignore_value):
    return paddle.shard_index(input, index_num, nshards, shard_id, ignore_value)
