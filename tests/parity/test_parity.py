"""Every module of cases/ on real Paddle (PROA_ORACLE, its interpreter) and on Proa; the outcomes must agree.

Writes build/parity/agreed.txt: the public names that agreeing cases show; tools/api_coverage.py counts them.
"""
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

import compare

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
ORACLE = os.environ.get("PROA_ORACLE", str(ROOT / ".venv-oracle/bin/python"))
MODULES = sorted((HERE / "cases").glob("*.py"))


def outcomes(command, module, out, env):
    done = subprocess.run([*command, str(HERE / "run_cases.py"), str(module), str(out)], env=env, text=True,
                          capture_output=True, timeout=600, cwd=out.parent)
    if done.returncode:
        pytest.fail(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return pickle.loads(out.read_bytes())


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.stem)
def test_parity(module, tmp_path):
    env = dict(os.environ, FLAGS_paddle_num_threads="2", GLOG_minloglevel="2", PYTHONDONTWRITEBYTECODE="1")
    want = outcomes([ORACLE], module, tmp_path / "paddle", env)
    env["PYTHONPATH"] = str(BUILD / "python")
    got = outcomes([sys.executable, "-m", "proa"], module, tmp_path / "proa", env)
    assert list(got) == list(want)
    wrong = {name: compare.verdict(got[name], want[name]) for name in want}
    agreed = sorted({n for name in want if not wrong[name] for n in want[name]["names"]})
    folder = BUILD / "parity"
    folder.mkdir(exist_ok=True)
    (folder / f"{module.stem}.txt").write_text("".join(n + "\n" for n in agreed))
    bad = [f"--- {name}\n{text}" for name, text in wrong.items() if text]
    print(f"{module.stem}: {len(want)} cases, {len(agreed)} names, {len(bad)} wrong")
    assert not bad, f"{len(bad)} of {len(want)} cases differ\n" + "\n".join(bad)
