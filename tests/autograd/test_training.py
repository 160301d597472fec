"""The first 20 training steps of an MLP, a CNN and a transformer block follow real Paddle's losses, for every
optimizer, from the same weights. Needs the oracle's environment and the built tests."""
import pathlib
import subprocess

import pytest

import oracle
import train_steps_cases as cases
from conftest import once

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    if not oracle.PYTHON.exists():
        pytest.skip("no oracle environment")
    return once(tmp_path_factory, "training", lambda out: oracle.ask(HERE / "train_steps.py", out, timeout=900))


@pytest.mark.parametrize("optimizer", cases.RATES)
@pytest.mark.parametrize("model", cases.MODELS)
def test_losses_follow_paddle(recorded, model, optimizer):
    program = cases.build_folder() / "tests/train_steps"
    expected = [float(v) for v in (recorded / model / f"{optimizer}.txt").read_text().split()]
    run = subprocess.run([program, recorded / model, model, optimizer, str(cases.RATES[optimizer]), str(cases.STEPS)],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    got = [float(v) for v in run.stdout.split()]
    assert len(got) == len(expected) == cases.STEPS
    apart = max(abs(g - e) for g, e in zip(got, expected))
    assert apart <= 1e-4, f"losses differ by {apart:.2e}: {list(zip(got, expected))}"
    assert got[-1] < got[0]
