"""NumPy references of sort, argsort, topk, kthvalue, mode and searchsorted; equal elements keep their order. One
function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and
compares Proa's outputs with the outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np


def _order(x, axis, descending):
    """Indices that sort x stably along axis, ascending or descending."""
    if not descending:
        return np.argsort(x, axis, kind="stable").astype(np.int64)
    rank = np.unique(x, return_inverse=True)[1].reshape(x.shape)
    return np.argsort(-rank, axis, kind="stable").astype(np.int64)


def sort(x, axis, descending):
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    places = _order(x, axis, descending)
    return np.take_along_axis(x, places, axis), places


def argsort(x, axis, descending):
    return sort(x, axis, descending)[1]


def topk(x, k, axis, largest, sorted, k_tensor):
    places = np.take(_order(x, axis, largest), np.arange(k_tensor[0] if len(k_tensor) else k), axis)
    return np.take_along_axis(x, places, axis), places


def kthvalue(x, k, axis, keepdim):
    places = np.take(_order(x, axis, False), [k - 1], axis)
    out = np.take_along_axis(x, places, axis)
    return (out, places) if keepdim else (out.squeeze(axis), places.squeeze(axis))


def searchsorted(sorted_sequence, values, out_int32, right):
    side, dtype = "right" if right else "left", np.int32 if out_int32 else np.int64
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side).astype(dtype)
    rows = zip(sorted_sequence.reshape(-1, sorted_sequence.shape[-1]), values.reshape(-1, values.shape[-1]))
    return np.stack([np.searchsorted(s, v, side) for s, v in rows]).reshape(values.shape).astype(dtype)


def mode(x, axis, keepdim):
    lines = np.moveaxis(x, axis, -1)
    out, at = np.zeros((2, *lines.shape[:-1]))
    for i in np.ndindex(*lines.shape[:-1]):
        values, counts = np.unique(lines[i], return_counts=True)
        out[i] = values[counts.argmax()]
        at[i] = np.flatnonzero(lines[i] == out[i])[-1]
    out, at = out.astype(x.dtype), at.astype(np.int64)
    return (np.expand_dims(out, axis), np.expand_dims(at, axis)) if keepdim else (out, at)
