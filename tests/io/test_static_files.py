"""Static programs in files, both ways between Proa and real Paddle: training programs with their gradient ops,
inference models, and the old folders with one file a variable. Needs real Paddle (PROA_ORACLE)."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import oracle
import ours
from conftest import NEEDS_PADDLE

HERE = pathlib.Path(__file__).resolve().parent
SIDES = "paddle", "proa"
MODELS = ["mlp", "conv", "attention", "words", "recurrent", "bent", "supplied"]

pytestmark = NEEDS_PADDLE


def run(who, what, prefix, model):
    """The numbers that travel.py prints."""
    words, cwd = (HERE / "travel.py", what, prefix, model), os.path.dirname(prefix)
    done = oracle.run(*words, cwd=cwd) if who == "paddle" else ours.run(*words, cwd=cwd, PYTHONWARNINGS="ignore")
    assert done.returncode == 0, f"{what} under {who}:\n{done.stderr[-3000:]}"
    return np.array([float(v) for v in done.stdout.split()])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("maker", SIDES)
def test_training_program(maker, model, tmp_path):
    """Saved by one, trained for ten steps by both: equal losses."""
    run(maker, "save", tmp_path / "m", model)
    losses = {who: run(who, "resume", tmp_path / "m", model) for who in SIDES}
    assert len(losses["paddle"]) == 10
    np.testing.assert_allclose(losses["proa"], losses["paddle"], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("maker", SIDES)
def test_inference_model(maker, model, tmp_path):
    want = run(maker, "export", tmp_path / "m", model)
    for who in SIDES:
        np.testing.assert_allclose(run(who, "infer", tmp_path / "m", model), want, rtol=1e-5, atol=1e-5)


def test_constants(tmp_path):
    """A constant in a static program is no variable of the scope, and is saved all the same."""
    code = ("import sys, numpy as np, proa as paddle, proa.static as s; paddle.enable_static();"
            "x = s.data('x', [None, 3]); y = paddle.sum(x * paddle.to_tensor(np.float32([1, 2, 4])), axis=1); e = s.Executor();"
            "p = s.default_main_program(); s.save(p, sys.argv[1]); s.save_inference_model(sys.argv[1], [x], [y], e);"
            "assert len(p.state_dict()) == 1; s.load(p, sys.argv[1], e);"
            "q, f, t = s.load_inference_model(sys.argv[1], e);"
            "print(e.run(q, feed={'x': np.float32([[1, 1, 1]])}, fetch_list=t)[0])")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m")], text=True, capture_output=True, timeout=60)
    assert done.stdout.split() == ["[7.]"], done.stderr


def test_old_folder(tmp_path):
    """A folder with __model__ and a file for each variable, as Paddle 1 wrote them."""
    want = run("paddle", "export", tmp_path / "m", "conv")
    split = ("import sys, paddle, paddle.static as s; paddle.enable_static(); e = s.Executor();"
             "p, f, t = s.load_inference_model(sys.argv[1], e);"
             "s.save_vars(e, sys.argv[2], p, predicate=lambda v: v.persistable and v.name not in ('feed', 'fetch'))")
    oracle.ask("-c", split, tmp_path / "m", tmp_path / "old")
    (tmp_path / "old/__model__").write_bytes((tmp_path / "m.pdmodel").read_bytes())
    assert len(list((tmp_path / "old").iterdir())) > 5
    np.testing.assert_allclose(run("proa", "infer_folder", tmp_path / "old", "conv"), want, rtol=1e-5, atol=1e-5)
