"""Models that are quantized here run in real Paddle and the other way round, over four kinds of nets: they answer the same on
both sides, and know digits as well as the nets in float."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import oracle
from conftest import NEEDS_PADDLE, once

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
SCRIPT = HERE / "inference/quantize_digits.py"

pytestmark = NEEDS_PADDLE


def run(side, what, folder):
    words = SCRIPT, what, folder, ROOT / "examples/data"
    done = oracle.run(*words, timeout=1500) if side == "paddle" else subprocess.run(
        [sys.executable, "-m", "proa", *words], env={**os.environ, "PYTHONWARNINGS": "ignore"}, text=True, capture_output=True, timeout=1500)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@pytest.fixture(scope="session")
def nets(tmp_path_factory):
    """The weights of all nets in float: both sides quantize the same ones."""
    def make(out):
        out.mkdir()
        run("proa", "train", out)
    return once(tmp_path_factory, "digit-nets", make) / "nets.npz"


@pytest.mark.parametrize("maker, reader", [("proa", "paddle"), ("paddle", "proa")])
def test_both_ways(tmp_path, nets, maker, reader):
    shutil.copy(nets, tmp_path)
    run(maker, "make", tmp_path)
    run(reader, "predict", tmp_path)
    made, read = np.load(tmp_path / "make.npz"), np.load(tmp_path / "predict.npz")
    labels, names = made["labels"], [n for n in made.files if n != "labels"]
    known = {n: 100 * (read[n].argmax(1) == labels).mean() for n in names}
    wrong = []
    for name in names:
        away = np.abs(read[name] - made[name]) / np.abs(made[name]).max()
        lost = known[name.partition("_")[0] + "_float"] - known[name]
        print(f"{name:32} {known[name]:6.2f} % {-lost:+.2f}   apart {away.mean():.1e}, at most {away.max():.1e}")
        # a value on a rounding edge moves what depends on it by a step
        if not (away.mean() <= 2e-3 and lost <= 0.5):
            wrong.append(name)
    assert len(names) - 4 >= 28 and not wrong, wrong
    on_integers(tmp_path, made, labels, names)


def on_integers(folder, made, labels, names):
    """INT8 kernels are held to the simulation, and to the nets in float."""
    run("proa", "int8", folder)
    have = np.load(folder / "int8.npz")
    known = {n: 100 * (have[n].argmax(1) == labels).mean() for n in names}
    wrong = []
    for name in names:
        away = np.abs(have[name] - made[name]) / np.abs(made[name]).max()
        lost = known[name.partition("_")[0] + "_float"] - known[name]
        print(f"int8 {name:32} {known[name]:6.2f} % {-lost:+.2f}   apart {away.mean():.1e}, at most {away.max():.1e}")
        # a residual is rounded where other ops read integers of it
        if not (away.mean() <= 3e-3 and away.max() <= 0.03 and lost <= 0.5):
            wrong.append(name)
    assert not wrong, wrong


PREDICT = """
import sys, numpy as np
sys.path.insert(0, sys.argv[1])
import quantize_digits
made = np.load(sys.argv[2] + "/frozen.npz")
np.save(sys.argv[2] + "/theirs.npy", quantize_digits.predict(sys.argv[2] + "/frozen", made["x"]))
"""


@pytest.mark.parametrize("weights, acts", [("abs_max", "moving_average_abs_max"), ("channel_wise_abs_max", "range_abs_max"),
                                           ("channel_wise_abs_max", "moving_average_abs_max"), ("abs_max", "abs_max")])
def test_programs_that_train(tmp_path, weights, acts):
    """The passes: a program goes on training with quantizers, and what is frozen of it runs in real Paddle."""
    env = dict(os.environ, PYTHONPATH=str(BUILD / "python"))
    done = subprocess.run([sys.executable, "-m", "proa", str(HERE / "inference/quantize_program.py"), str(tmp_path),
                           str(ROOT / "examples/data"), weights, acts], env=env, text=True, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["losses"][-1] < found["losses"][1] < 0.1 * found["losses"][0], found
    assert min(found["simulated"], found["frozen"]) >= found["whole"] - 0.005, found
    assert sum(op.startswith("fake_") and "dequantize" not in op for op in found["ops"]) == 3, found["ops"]
    oracle.ask("-c", PREDICT, HERE / "inference", tmp_path, timeout=600)
    want, have = np.load(tmp_path / "theirs.npy"), np.load(tmp_path / "frozen.npz")["answers"]
    assert np.abs(have - want).mean() <= 2e-3 * np.abs(want).max()
