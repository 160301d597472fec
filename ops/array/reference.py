"""NumPy references of the tensor-array ops (array_create, array_write, array_read, array_length, array_to_tensor)
and of their gradients; an array is one NumPy array [items, …]. One function per op, named as the op:
tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares Proa's outputs with the
outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np

DTYPES = {"F32": np.float32, "I64": np.int64}


def array_create(dtype="F32", item=()):
    return np.zeros([0, *item], DTYPES[dtype])


def array_write(array, x, index):
    at = int(np.asarray(index).ravel()[0])
    items = list(array) if array.shape[0] else []
    items += [np.zeros_like(x)] * (at + 1 - len(items))
    items[at] = x
    return np.stack(items)


def array_write_grad(array, index, d_out):
    d = d_out[:array.shape[0]].copy()
    at = int(index.ravel()[0])
    if at < len(d):
        d[at] = 0
    return d


def array_read(array, index):
    return array[int(np.asarray(index).ravel()[0])]


def array_read_grad(array, index, d_out):
    d = np.zeros_like(array)
    d[int(index.ravel()[0])] = d_out
    return d


def array_length(array):
    return np.array([array.shape[0]])


def array_to_tensor(array, axis=0, use_stack=False):
    join = np.stack if use_stack else np.concatenate
    sizes = [1 if use_stack else item.shape[axis] for item in array]
    return join(list(array), axis), np.array(sizes, np.int32)
