"""Each script of this folder, unmodified, under real Paddle and under `python -m proa`: both print the same.

A script is an ordinary Paddle program: its weights and data come from NumPy, it prints names and numbers. Text must
be equal and numbers agree to 1e-4 of their size. Needs real Paddle (PROA_ORACLE, its interpreter) and a build
(PROA_BUILD); both run in an empty folder that holds digits.npz.
"""
import concurrent.futures
import math
import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
ORACLE = os.environ.get("PROA_ORACLE", str(ROOT / ".venv-oracle/bin/python"))
COMMANDS = {"paddle": [ORACLE], "proa": [sys.executable, "-m", "proa"]}
# the second half of a pair has a test of its own
SCRIPTS = sorted(p.stem for p in HERE.glob("*.py")
                 if not p.stem.startswith(("test_", "transfer_")) and p.stem not in ("common", "conftest"))
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)(?![\w])")
TIME = re.compile(r"\d+m?u?s/step")

pytestmark = pytest.mark.skipif(not os.path.exists(ORACLE), reason="real Paddle is not installed")


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    import numpy as np
    from sklearn.datasets import load_digits
    data, path = load_digits(), tmp_path_factory.mktemp("digits") / "digits.npz"
    np.savez(path, images=data.images.astype("uint8"), labels=data.target.astype("uint8"))
    return path


def run(who, name, folder, digits):
    """What the script printed; fails the test if it failed."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "digits.npz").exists():
        (folder / "digits.npz").symlink_to(digits)
    env = dict(os.environ, FLAGS_paddle_num_threads="1", GLOG_minloglevel="2", PYTHONDONTWRITEBYTECODE="1",
               PYTHONWARNINGS="ignore", PYTHONPATH=str(BUILD / "python") if who == "proa" else "")
    # real Paddle waits for ever after some errors, for instance one in a data set
    done = subprocess.run([*COMMANDS[who], str(HERE / f"{name}.py")], cwd=folder, env=env, text=True,
                          capture_output=True, timeout=120)
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
def test_script(name, tmp_path, digits):
    agree(*both(("paddle", name, tmp_path / "paddle", digits), ("proa", name, tmp_path / "proa", digits)))


def test_transfer_both_ways(tmp_path, digits):
    """Either loads the states that the other saved."""
    a, b = tmp_path / "a", tmp_path / "b"
    agree(*both(("paddle", "transfer_pretrain", a, digits), ("proa", "transfer_pretrain", b, digits)))
    agree(*both(("paddle", "transfer_finetune", b, digits), ("proa", "transfer_finetune", a, digits)))
