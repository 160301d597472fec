"""The table declares every dtype that real Paddle's CPU op takes, apart from a committed list that may only shrink."""
import pathlib
import subprocess

import pytest

from conftest import BUILD, ROOT

ORACLE = ROOT / ".venv-oracle/bin/python"
HERE = pathlib.Path(__file__).resolve().parent


def as_pairs(text):
    return {(op, d) for op, *dtypes in (line.split() for line in text.splitlines() if line[:1] not in ("#", ""))
            for d in dtypes}


@pytest.mark.skipif(not ORACLE.exists(), reason="no oracle environment")
def test_dtypes_cover_paddles():
    run = subprocess.run([ORACLE, HERE / "probe_dtypes.py", BUILD], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    found, known = as_pairs(run.stdout), as_pairs((HERE / "dtype_gaps.txt").read_text())
    assert not found - known, f"new gaps: {sorted(found - known)}"
    assert not known - found, f"closed gaps: take them out of dtype_gaps.txt: {sorted(known - found)}"
