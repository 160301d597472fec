"""NumPy references of the ops that read or write by index or by mask: gather, scatter, index_put, nonzero, unique
and their kind, and their gradients. One function per op, named as the op: tests/ops/test_ops.py calls it with the
op's fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's
order (None: not compared)."""
import numpy as np


def gather(x, index, axis, axis_tensor):
    axis = axis_tensor[0] if len(axis_tensor) else axis
    return np.take(x, index[:, 0] if index.ndim == 2 else index, axis)


def index_select(x, index, axis):
    return np.take(x, index, axis)


def index_select_grad(d_out, index, shape, axis):
    d_x = np.zeros(shape, d_out.dtype)
    np.add.at(np.moveaxis(d_x, axis, 0), index, np.moveaxis(d_out, axis, 0))
    return d_x


def _points(index):
    return tuple(np.moveaxis(index, -1, 0))


def gather_nd(x, index):
    return x[_points(index)]


def gather_nd_grad(d_out, index, shape):
    d_x = np.zeros(shape, d_out.dtype)
    np.add.at(d_x, _points(index), d_out)
    return d_x


def index_sample(x, index):
    return np.take_along_axis(x, index, 1)


def _whole(arr, indices, axis, broadcast):
    """(arr, indices) with equal dims but for the axis: broadcast together, or arr cut to the lengths of indices."""
    if not broadcast:
        cut = [np.s_[:n] for n in indices.shape]
        cut[axis] = np.s_[:]
        return arr[tuple(cut)], indices
    shape = list(np.broadcast_shapes(*(t.shape[:axis % t.ndim] + (1,) + t.shape[axis % t.ndim + 1:]
                                       for t in (arr, indices))))
    out = []
    for t in (arr, indices):
        shape[axis] = t.shape[axis]
        out.append(np.broadcast_to(t, shape))
    return out


def take_along_axis(arr, indices, axis, broadcast):
    arr, indices = _whole(arr, indices, axis, broadcast)
    return np.take_along_axis(arr, indices, axis)


def _grid(indices, axis):
    """A NumPy index of the elements that the entries of indices select along the axis."""
    at = list(np.indices(indices.shape))
    at[axis] = indices
    return tuple(at)


def take_along_axis_grad(d_out, indices, shape, axis):
    d_arr = np.zeros(shape, d_out.dtype)
    np.add.at(d_arr, _grid(np.broadcast_to(indices, d_out.shape), axis), d_out)
    return d_arr


def put_along_axis(arr, indices, values, axis, reduce, include_self, broadcast):
    _, indices = _whole(arr, indices, axis, broadcast)
    values = np.broadcast_to(values, indices.shape)
    at, out = _grid(indices, axis), arr.copy()
    if reduce == "assign":
        out[at] = values
        return out
    count = np.ones(arr.shape) * include_self
    np.add.at(count, at, 1)
    if not include_self:
        out[at] = {"add": 0, "mean": 0, "multiply": 1}.get(reduce, values)
    combine = {"add": np.add, "mean": np.add, "multiply": np.multiply, "amin": np.minimum, "amax": np.maximum}
    combine[reduce].at(out, at, values)
    if reduce == "mean":
        touched = np.zeros(arr.shape, bool)
        touched[at] = True
        divisor = np.where(touched, count, 1)
        whole = np.issubdtype(arr.dtype, np.integer)
        out = (np.trunc(out / divisor) if whole else out / divisor).astype(arr.dtype)
    return out


def masked_select(x, mask):
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


def masked_select_grad(d_out, mask, shape):
    mask = np.broadcast_to(mask, np.broadcast_shapes(mask.shape, tuple(shape)))
    d_x = np.zeros(mask.shape, d_out.dtype)
    d_x[mask] = d_out
    return d_x


def nonzero(x):
    return np.stack(np.nonzero(x), -1).astype(np.int64)


def scatter(x, index, updates, overwrite):
    out, index = x.copy(), index.reshape(-1)
    if overwrite:
        for i, row in zip(index, updates.reshape((len(index),) + x.shape[1:])):
            out[i] = row
        return out
    out[index] = 0
    np.add.at(out, index, updates)
    return out


def scatter_nd_add(x, index, updates):
    out = x.copy()
    np.add.at(out, _points(index), updates)
    return out


def index_put(x, index, value, accumulate):
    out = x.copy()
    at = index if index.dtype == bool else _points(index)
    if accumulate:
        np.add.at(out, at, value)
    else:
        out[at] = value
    return out


def index_add(x, index, axis, value):
    out = x.copy()
    np.add.at(np.moveaxis(out, axis, 0), index, np.moveaxis(value, axis, 0))
    return out


def index_fill(x, index, axis, value):
    out = x.copy()
    np.moveaxis(out, axis, 0)[index] = value
    return out


def masked_fill(x, mask, value):
    return np.where(mask, np.asarray(value).astype(x.dtype), x)


def set_value(x, value, axes, starts, ends, steps, decrease_axes, none_axes):
    out, index = x.copy(), [np.s_[:]] * x.ndim
    for k, axis in enumerate(axes):
        cut = np.s_[starts[k]:ends[k]:steps[k] if len(steps) else 1]
        index[axis] = starts[k] if axis in decrease_axes else cut
    out[tuple(index)] = value
    return out


def unique(x, return_index, return_inverse, return_counts, axis, dtype):
    out, index, inverse, counts = np.unique(x, True, True, True, axis[0] if len(axis) else None)
    return (out, index if return_index else None, inverse.reshape(-1) if return_inverse else None,
            counts if return_counts else None)


def repeat_interleave(x, repeats_tensor, repeats, axis):
    return np.repeat(x, repeats if repeats_tensor is None else repeats_tensor, axis)


def repeat_interleave_grad(d_out, repeats_tensor, shape, repeats, axis):
    index = np.repeat(np.arange(shape[axis]), repeats if repeats_tensor is None else repeats_tensor)
    d_x = np.zeros(shape, d_out.dtype)
    np.add.at(np.moveaxis(d_x, axis, 0), index, np.moveaxis(d_out, axis, 0))
    return d_x


def unique_consecutive(x, return_inverse, return_counts, axis, dtype):
    axis = axis[0] if len(axis) else None
    rows = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    starts = [i for i in range(len(rows)) if i == 0 or not np.array_equal(rows[i], rows[i - 1])]
    out = rows[starts] if axis is None else np.moveaxis(rows[starts], 0, axis)
    to = np.int32 if dtype == "I32" else np.int64
    counts = np.diff([*starts, len(rows)]).astype(to)
    inverse = np.repeat(np.arange(len(starts)), counts).astype(to)
    return out, inverse if return_inverse else None, counts if return_counts else None


def multiplex(inputs, index):
    return np.stack([inputs[k][i] for i, k in enumerate(index.reshape(-1))])


def shard_index(input, index_num, nshards, shard_id, ignore_value):
    size = (index_num + nshards - 1) // nshards
    return np.where(input // size == shard_id, input % size, ignore_value).astype(input.dtype)
