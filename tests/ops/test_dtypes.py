"""The table declares every dtype that real Paddle's CPU op takes, apart from a committed list that may only shrink."""
import pathlib

import oracle
from conftest import BUILD, NEEDS_PADDLE

HERE = pathlib.Path(__file__).resolve().parent


def as_pairs(text):
    return {(op, d) for op, *dtypes in (line.split() for line in text.splitlines() if line[:1] not in ("#", ""))
            for d in dtypes}


@NEEDS_PADDLE
def test_dtypes_cover_paddles():
    found, known = as_pairs(oracle.ask(HERE / "probe_dtypes.py", BUILD)), as_pairs((HERE / "dtype_gaps.txt").read_text())
    assert not found - known, f"new gaps: {sorted(found - known)}"
    assert not known - found, f"closed gaps: take them out of dtype_gaps.txt: {sorted(known - found)}"
