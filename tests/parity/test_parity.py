"""Every module of cases/ on real Paddle (PROA_ORACLE, its interpreter) and on Proa; the outcomes must agree.

Writes build/parity/agreed.txt: the public names that agreeing cases show; tools/api_coverage.py counts them.
"""
import os
import pathlib
import pickle

import pytest

import compare
import oracle
import ours

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
MODULES = sorted((HERE / "cases").glob("*.py"))


def ran(done, out):
    """Reads the answers of a program that has ended."""
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, done.args))} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return pickle.loads(out.read_bytes())


def on_proa(*words, cwd, **env):
    return ours.run(*words, cwd=cwd, timeout=600, PYTHONDONTWRITEBYTECODE="1", FLAGS_paddle_num_threads="2", **env)


def sides(tmp_path):
    """For real Paddle and for Proa, a function that runs a program there and reads its answers: side(program, argument, out)."""
    def side(run, name):
        (tmp_path / name).mkdir()
        return lambda program, argument, out: ran(run(HERE / program, argument, out, cwd=out.parent,
                                                      TMPDIR=str(tmp_path / name)), out)

    def on_paddle(*words, **options):
        return oracle.run(*words, timeout=150, attempts=4, PYTHONWARNINGS="", FLAGS_paddle_num_threads="2", **options)
    return side(on_paddle, "theirs"), side(on_proa, "ours")


def exchanged(side, folder, out):
    """The models that the other side's cases left behind, on this one: lines on those that answer otherwise."""
    found = side("exchange.py", folder, out)
    bad = []
    for name, (got, want) in found.items():
        pairs = zip(got, want) if not isinstance(got, str) and len(got) == len(want) else ()
        text = str(got) if not pairs else "\n".join(filter(None, (
            compare.difference(f"output {i}", ("array", str(a.dtype), a), ("array", str(b.dtype), b))
            for i, (a, b) in enumerate(pairs))))
        if text:
            bad.append(f"--- {out.stem}: {name}\n{text}")
    return bad, len(found)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.stem)
def test_parity(module, tmp_path):
    theirs, mine = sides(tmp_path)
    want = theirs("run_cases.py", module, tmp_path / "paddle")
    got = mine("run_cases.py", module, tmp_path / "proa")
    assert list(got) == list(want)
    wrong = {name: compare.verdict(got[name], want[name]) for name in want}
    agreed = sorted({n for name in want if not wrong[name] for n in want[name]["names"]})
    folder = BUILD / "parity"
    folder.mkdir(exist_ok=True)
    (folder / f"{module.stem}.txt").write_text("".join(n + "\n" for n in agreed))
    bad = [f"--- {name}\n{text}" for name, text in wrong.items() if text]
    if next((tmp_path / "theirs").rglob("answers.pkl"), None):
        (worse, n), (worst, m) = (exchanged(theirs, tmp_path / "ours", tmp_path / "paddle loads"),
                                  exchanged(mine, tmp_path / "theirs", tmp_path / "proa loads"))
        assert n and n == m, "both sides leave the same models"
        bad += worse + worst
    print(f"{module.stem}: {len(want)} cases, {len(agreed)} names, {len(bad)} wrong")
    assert not bad, f"{len(bad)} of {len(want)} cases differ\n" + "\n".join(bad)
