"""The creation ops full, full_like, arange, linspace, eye, tril, triu and the index ops of triangles in real Paddle.
One function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle
tensors, and saves the outputs that it returns, in the op table's order (None: not compared), for
tests/ops/test_ops.py."""
import paddle

_DTYPES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
           "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
           "C128": "complex128", None: None}


def full(shape, fill_value, dtype=None):
    return paddle.full(shape, fill_value, _DTYPES[dtype])


def full_like(x, fill_value, dtype=None):
    return paddle.full_like(x, fill_value, _DTYPES[dtype])


def arange(start, end, step, dtype=None):
    return paddle.arange(start, end, step, _DTYPES[dtype])


def linspace(start, stop, num, dtype=None):
    return paddle.linspace(start, stop, num, _DTYPES[dtype])


def eye(num_rows, num_columns=-1, dtype=None):
    return paddle.eye(num_rows, None if num_columns == -1 else num_columns, _DTYPES[dtype])


def tril(x, diagonal=0):
    return paddle.tril(x, diagonal)


def triu(x, diagonal=0):
    return paddle.triu(x, diagonal)


def tril_indices(rows, cols, offset=0, dtype="I64"):
    return paddle.tril_indices(rows, cols, offset, "int32" if dtype == "I32" else "int64")


def triu_indices(rows, cols, offset=0, dtype="I64"):
    return paddle.triu_indices(rows, cols, offset, "int32" if dtype == "I32" else "int64")
