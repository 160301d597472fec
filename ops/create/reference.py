"""NumPy references of the creation ops: full, arange, linspace, eye, tril, triu and their kind. One function per op,
named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as NumPy arrays, and compares Proa's
outputs with the outputs that it returns, in the op table's order (None: not compared)."""
import numpy as np

_DTYPES = {"BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64,
           "F16": np.float16, "BF16": np.float32, "F32": np.float32, "F64": np.float64, "C64": np.complex64,
           "C128": np.complex128, None: np.float32}


def full(shape, fill_value, dtype=None):
    return np.full(shape, fill_value, _DTYPES[dtype])


def full_like(x, fill_value, dtype=None):
    return np.full(x.shape, fill_value, _DTYPES[dtype] if dtype else x.dtype)


def fill(x, value):
    return np.full_like(x, value)


def arange(start, end, step, dtype=None):
    whole = all(isinstance(v, int) for v in (start, end, step))
    return np.arange(start, end, step).astype(_DTYPES[dtype] if dtype else np.int64 if whole else np.float32)


def linspace(start, stop, num, dtype=None):
    return np.linspace(start, stop, int(num)).astype(_DTYPES[dtype])


def eye(num_rows, num_columns=-1, dtype=None):
    return np.eye(num_rows, None if num_columns == -1 else num_columns, dtype=_DTYPES[dtype])


def tril(x, diagonal=0):
    return np.tril(x, diagonal)


def triu(x, diagonal=0):
    return np.triu(x, diagonal)


def assign_value(shape, dtype, values=(), int_values=()):
    return np.array(values or int_values).astype(_DTYPES[dtype]).reshape(shape)


def tril_indices(rows, cols, offset=0, dtype="I64"):
    return np.stack(np.tril_indices(rows, offset, cols)).astype(np.int32 if dtype == "I32" else np.int64)


def triu_indices(rows, cols, offset=0, dtype="I64"):
    return np.stack(np.triu_indices(rows, offset, cols)).astype(np.int32 if dtype == "I32" else np.int64)
