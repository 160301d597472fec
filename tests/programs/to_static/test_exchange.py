"""Models saved here are loaded by real Paddle (jit.load and the predictor), and the other way round; loaded ones are
fine-tuned with the losses of real Paddle's own training. (Real Paddle 2.6.2 gives a loaded layer no gradients.)"""
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import conftest
import oracle

HERE = pathlib.Path(__file__).resolve().parent
PLAIN = ["lenet", "resnet50", "mobilenet_v2", "mobilenet_v3", "bert", "gpt", "gpt_step", "sums", "bilstm", "yolo", "ssd", "masks"]
CONTROL = ["breaking_for", "plain_control", "seq2seq", "two_loops", "two_way"]
THEIRS = [*PLAIN, "plain_control", "seq2seq", "two_loops"]
TUNED = ["lenet", "gpt", "gpt_step", "bilstm", "plain_control"]

pytestmark = conftest.NEEDS_PADDLE


def run(side, action, folder, names):
    words = HERE / "exchange.py", side, action, folder, *names
    done = oracle.run(*words) if side == "paddle" else subprocess.run([sys.executable, *words], capture_output=True,
                                                                      text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().split("\n")[-1])


def saved_once(factory, side, names):
    """(folder, {model: whether it answers as before it was saved})."""
    def save(folder):
        folder.mkdir()
        (folder / "said.json").write_text(json.dumps(run(side, "save", folder, names)))
    folder = conftest.once(factory, f"saved-by-{side}", save)
    return folder, json.loads((folder / "said.json").read_text())


@pytest.fixture(scope="session")
def ours(tmp_path_factory):
    return saved_once(tmp_path_factory, "proa", PLAIN + CONTROL)


@pytest.fixture(scope="session")
def theirs(tmp_path_factory):
    return saved_once(tmp_path_factory, "paddle", THEIRS)


def check(results, limit=1e-5):
    for name, found in results.items():
        assert isinstance(found, dict), f"{name}: {found}"
        for how, apart in found.items():
            assert apart < limit, f"{name}, {how}: {apart}"


def test_saved_here(ours):
    folder, saved = ours
    assert all(one is True for one in saved.values()), saved
    check(run("proa", "load", folder, PLAIN + CONTROL))


def test_paddle_loads_ours(ours):
    check(run("paddle", "load", ours[0], PLAIN + CONTROL))


def test_theirs_load_here(theirs):
    folder, saved = theirs
    assert all(one is True for one in saved.values()), saved
    check(run("proa", "load", folder, THEIRS))


def test_fine_tuning(theirs):
    tuned, eager = run("proa", "tune", theirs[0], TUNED), run("paddle", "eager", theirs[0], TUNED)
    for name in TUNED:
        assert isinstance(tuned[name], list), f"{name}: {tuned[name]}"
        assert tuned[name] == pytest.approx(eager[name], rel=1e-4), name
        assert tuned[name][-1] != tuned[name][0]


def command(*words):
    done = subprocess.run([str(conftest.BUILD / "bin/proa"), *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, f"{words}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_command(whose, request, tmp_path):
    """proa inspect, run and diff on every model; run gives what the saving side computed."""
    folder, saved = request.getfixturevalue(whose)
    for name in saved:
        path = folder / name
        seen = json.loads(command("inspect", f"{path}.pdmodel", "--json"))
        given, want = np.load(f"{path}_in.npz"), np.load(f"{path}.npz")
        assert len(seen["inputs"]) == len(given.files) and len(seen["outputs"]) == len(want.files), name
        np.savez(tmp_path / "in.npz", **{one["name"]: given[k] for one, k in zip(seen["inputs"], given.files)})
        command("run", path, "--inputs", tmp_path / "in.npz", "--save", tmp_path / "out.npz")
        got = np.load(tmp_path / "out.npz")
        for one, k in zip(seen["outputs"], want.files):
            a, b = got[one["name"]], want[k]
            assert a.shape == b.shape and a.dtype == b.dtype, (name, one)
            assert np.abs(a.astype("float64") - b).max() <= 1e-5 * max(1e-9, np.abs(b).max()), (name, one)
        assert command("diff", path, path) == ""
