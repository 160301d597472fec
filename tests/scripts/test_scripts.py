"""Each script of this folder and of examples/python, unmodified, under real Paddle and under `python -m proa`: both
print the same.

A script is an ordinary Paddle program: its weights and data come from NumPy, it prints names and numbers. Text must
be equal and numbers agree to 1e-4 of their size. Needs real Paddle (PROA_ORACLE, its interpreter) and a build
(PROA_BUILD); both run in an empty folder.
"""
import concurrent.futures
import math
import os
import pathlib
import re

import pytest

import oracle
import ours
from conftest import NEEDS_PADDLE

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
# the second half of a pair has a test of its own
EXAMPLES = ROOT / "examples/python"
FILES = {p.stem: p for folder in (HERE, EXAMPLES) for p in folder.glob("*.py")}
SCRIPTS = sorted(name for name in FILES
                 if not name.startswith(("test_", "transfer_")) and name not in ("common", "conftest"))
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)(?![\w])")
TIME = re.compile(r"\d+m?u?s/step")

pytestmark = NEEDS_PADDLE


def run(who, name, folder):
    """The script's output; fails the test if the script failed."""
    folder.mkdir(parents=True, exist_ok=True)
    # real Paddle waits for ever after some errors, for instance one in a data set
    done = oracle.run(FILES[name], cwd=folder, timeout=120, attempts=2, PYTHONPATH=str(EXAMPLES)) if who == "paddle" else ours.run(
        FILES[name], cwd=folder, timeout=120, FLAGS_paddle_num_threads="1", PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore",
        PYTHONPATH=f"{EXAMPLES}:{BUILD / 'python'}")
    if done.returncode:
        pytest.fail(f"{name} under {who} ended with {done.returncode}:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    text = TIME.sub("#/step", done.stdout.replace(str(folder), ".").replace("proa.", "paddle."))
    return text.splitlines()


def both(first, second):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        a, b = pool.submit(run, *first), pool.submit(run, *second)
        return a.result(), b.result()


def near(a, b):
    a, b = float(a), float(b)
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-4 * max(1.0, abs(a))


def agree(want, got):
    for a, b in zip(want, got):
        x, y = NUMBER.findall(a), NUMBER.findall(b)
        same = NUMBER.sub("#", a) == NUMBER.sub("#", b) and len(x) == len(y) and all(map(near, x, y))
        assert same, f"differs:\n  Paddle: {a}\n  Proa:   {b}"
    assert len(want) == len(got), f"Paddle printed {len(want)} lines, Proa {len(got)}"
    assert len(want) > 2


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name, tmp_path):
    agree(*both(("paddle", name, tmp_path / "paddle"), ("proa", name, tmp_path / "proa")))


def test_transfer_both_ways(tmp_path):
    """Either loads the states that the other saved."""
    a, b = tmp_path / "a", tmp_path / "b"
    agree(*both(("paddle", "transfer_pretrain", a), ("proa", "transfer_pretrain", b)))
    agree(*both(("paddle", "transfer_finetune", b), ("proa", "transfer_finetune", a)))
