"""The examples' exported models in real Paddle: the digits' accuracy for three seeds, and agreement with Proa's own
executor to 1e-5, through paddle.inference and paddle.jit.load. Needs the oracle's environment."""
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

import oracle
import programs
from conftest import BUILD, NEEDS_PADDLE, ROOT

HERE = pathlib.Path(__file__).resolve().parent
DATA = ROOT / "examples/data"

pytestmark = NEEDS_PADDLE


def run_example(folder, name, *args, short=False):
    env = {**os.environ, "PROA_DATA": str(DATA), **({"PROA_SHORT": "1"} if short else {})}
    done = subprocess.run([BUILD / "examples" / name, *args], cwd=folder, env=env, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_paddle(folder, stem, x):
    np.save(folder / "x.npy", x)
    oracle.ask(HERE / "predict.py", folder / stem, folder / "x.npy", folder / "y.npz")
    return np.load(folder / "y.npz")


def here(folder, stem, x):
    p = programs.Program(programs.open_library(), folder / stem)
    (y,) = p.run(x)
    p.close()
    return y


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_digits(tmp_path, seed):
    said = run_example(tmp_path, "digits_cnn", str(DATA), ".", str(seed))
    assert float(re.search(r"test accuracy: ([\d.]+) %", said)[1]) >= 98.5
    assert not (tmp_path / "digits.ckpt").exists()
    table = np.loadtxt(DATA / "digits_test.csv", delimiter=",", skiprows=1)
    x = (table[:, :64] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    assert len(x) == 360
    mine, theirs = here(tmp_path, "digits", x), in_paddle(tmp_path, "digits", x)
    for way in ("predictor", "jit"):
        y = theirs[way]
        accuracy = np.mean(y.argmax(1) == table[:, 64])
        assert accuracy >= 0.985, f"seed {seed}, {way}: {accuracy:.4f}"
        assert np.abs(y - mine).max() <= 1e-5 * max(1, np.abs(mine).max())


def test_transformer(tmp_path):
    run_example(tmp_path, "char_transformer", short=True)
    x = np.random.RandomState(0).randint(0, 20, (3, 64)).astype(np.int64)
    mine, theirs = here(tmp_path, "char_transformer", x), in_paddle(tmp_path, "char_transformer", x)
    for way in ("predictor", "jit"):
        assert np.abs(theirs[way] - mine).max() <= 1e-5 * max(1, np.abs(mine).max())
