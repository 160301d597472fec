"""The gradient of an embedding's table: rows that nothing, one or several numbers name, summed in the order of the numbers, by
either way (a scan a thread, or by blocks of rows), with stores past the caches or not, in any number of threads."""
import numpy as np
import pytest

import proa as paddle
from proa import _core

# rows, width, numbers
TABLES = {"scanned": (50, 130, 3000), "narrow": (40000, 3, 5000), "by blocks": (5000, 128, 3000), "large": (9000, 192, 2000),
          "rows of odd length": (3000, 131, 900), "one row": (1, 600, 1)}


@pytest.fixture(autouse=True)
def settings():
    yield
    _core.set_flag("num_threads", "0")


def gradient(ids, rows, d_out, padding, threads):
    _core.set_flag("num_threads", str(threads))
    table = paddle.zeros([rows, d_out.shape[1]], d_out.dtype)
    table.stop_gradient = False
    out = paddle.nn.functional.embedding(paddle.to_tensor(ids), table, padding_idx=padding)
    out.backward(d_out)
    return table.grad


def sums(ids, rows, d_out, padding):
    found = np.zeros([rows, d_out.shape[1]], d_out.dtype)
    for i, row in zip(ids, d_out):
        if i != padding:
            found[i] += row
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("table", TABLES)
def test_rows_are_summed_in_order(table, dtype):
    rows, width, n = TABLES[table]
    draw = np.random.RandomState(rows)
    ids = draw.randint(0, rows, n)
    ids[: n // 8] = ids[0]
    values = draw.randn(n, width).astype("float32" if dtype == "bfloat16" else dtype)
    values[::5] = -0.0
    d_out = paddle.to_tensor(values).astype(dtype)
    exact = d_out.astype("float32").numpy() if dtype == "bfloat16" else values
    for padding in (None, int(ids[-1])):
        want = sums(ids, rows, exact, padding)
        for threads in (1, 2, 3):
            got = gradient(ids, rows, d_out, padding, threads)
            if dtype == "bfloat16":  # summed in float32, rounded once
                got, expected = got.astype("float32").numpy(), paddle.to_tensor(want).astype(dtype).astype("float32").numpy()
            else:
                got, expected = got.numpy(), want
            assert got.tobytes() == expected.tobytes(), (padding, threads)
