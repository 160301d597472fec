"""The server of programs on real Paddle (tests/oracle.py)."""
import select
import subprocess
import types

import pytest

import forked
import oracle
from conftest import NEEDS_PADDLE

pytestmark = NEEDS_PADDLE


def test_status_and_output():
    done = oracle.run("-c", "import sys, paddle; print(paddle.__name__); sys.exit(3)")
    assert (done.returncode, done.stdout) == (3, "paddle\n")


def test_a_late_program_is_killed():
    with pytest.raises(subprocess.TimeoutExpired) as late:
        oracle.run("-c", "import time; print('began', flush=True); time.sleep(60)", timeout=2)
    assert late.value.output == "began\n" and "line 1 in <module>" in late.value.__notes__[0]
    assert oracle.ask("-c", "print('the next')") == "the next\n"


def test_a_late_program_runs_again(tmp_path):
    text = "import os, time; late = not os.path.exists('ran'); open('ran', 'w'); time.sleep(60 * late); print('ran again')"
    assert oracle.run("-c", text, cwd=tmp_path, timeout=2, attempts=2).stdout == "ran again\n"


def test_a_late_program_ends_before_it_is_killed(monkeypatch):
    def late(ready, *rest):
        select.select(ready, [], [], 60)  # until its end has been told
        return [], [], []
    monkeypatch.setattr(forked, "select", types.SimpleNamespace(select=late))
    with pytest.raises(subprocess.TimeoutExpired):
        oracle.run("-c", "print('done')")
