"""Random programs of public functions: eagerly, under to_static, exported with fixed and unknown dims, in a predictor, and all
of that against real Paddle; and random training configurations. A few seeds here; PROA_RANDOM_SEEDS=FIRST:COUNT runs others."""
import os
import pathlib
import pickle
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import judge
import oracle
import ours

FIRST, COUNT = os.environ.get("PROA_RANDOM_SEEDS", "3000:8").split(":")
RUN = pathlib.Path(__file__).parent / "run.py"
CONFIGURATIONS = pathlib.Path(__file__).parent / "configurations.py"


def run(*words):
    done = ours.run(*words, timeout=3600, PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("kind", ["found", "float64", "float32", "mixed", "complex", "complex64", "float16", "bfloat16"])
def test_random_programs(kind, tmp_path):
    made, answers = tmp_path / "made", tmp_path / "answers"
    run(RUN, "make", made, kind, FIRST, COUNT)
    programs = pickle.loads(made.read_bytes())
    if oracle.PYTHON.exists() and kind not in ("float16", "bfloat16"):  # Paddle has few kernels of halves for CPUs
        oracle.ask(RUN, "answer", made, answers, timeout=3600)
    against = pickle.loads(answers.read_bytes()) if answers.exists() else None
    found = [f"{p['id']} {what}: {line}\n{p['source']}" for p in programs for what, line in judge.differences(p, against)]
    assert not found, "\n".join(found)


def test_random_configurations(tmp_path):
    """Compiled, resumed (bit for bit) and, where Paddle takes the configuration, as Paddle trains."""
    proas, theirs = tmp_path / "ours", tmp_path / "theirs"
    run(CONFIGURATIONS, proas, FIRST, COUNT)
    made = pickle.loads(proas.read_bytes())
    if oracle.PYTHON.exists():
        oracle.ask(CONFIGURATIONS, theirs, FIRST, COUNT, timeout=3600)
    paddles = pickle.loads(theirs.read_bytes()) if theirs.exists() else {}
    found = []
    for seed, (text, dtype, modes) in made.items():
        answer = paddles.get(seed)
        if isinstance(answer, tuple):  # a text: the configuration ends Paddle's process
            assert text == answer[0]
            answer = answer[2]["eager"]
        found += [f"{text}\n  {what}: {line}" for what, line in judge.configuration(dtype, modes, answer)]
    assert not found, "\n".join(found)
