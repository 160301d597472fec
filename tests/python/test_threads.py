"""Scalar formulas give the same bits however many threads share them out: every sample's numbers, repeated until there are
enough for several threads."""
import numpy as np
import pytest

import matrix
import runner
from conftest import BUILD
from proa import _core

MANY = 2 * 65536 + 19  # two threads share them even where an element is a byte in and a byte out; no whole number of vectors
OPS = [op for op in matrix.load_table(BUILD) if op["formula"]]


def repeated(case):
    """The case with MANY elements in every input; None if it takes anything but filled arrays."""
    case = runner.resolve(case)
    given = {k: v for k, v in case.inputs.items() if v is not None}
    if not all(isinstance(v, matrix.Array) and v.values.size for v in given.values()):
        return None
    case.inputs = {k: matrix.Array(np.resize(v.values, MANY), v.dtype) for k, v in given.items()}
    return case


def with_threads(case, n):
    try:
        _core.set_flag("num_threads", str(n))
        return runner.call(case)
    finally:
        _core.set_flag("num_threads", "0")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op["name"])
def test_threads_change_no_bit(op):
    found = [case for case in map(repeated, matrix.cases(op)) if case]
    assert found
    for case in found:
        for one, two in zip(with_threads(case, 1), with_threads(case, 2)):
            assert one.tobytes() == two.tobytes(), case.id
