"""Samples of two long tests: random combinations of parallelism against one process (tests/ranks/hybrid.py), and killed ranks of a
sharded pipeline (tests/robustness/kill/hybrid.py)."""
import importlib.util
import os
import pathlib
import random

import pytest

from launched import passes

TESTS = pathlib.Path(__file__).resolve().parent.parent
SEED = int(os.environ.get("PROA_SEED", 2))  # the long tests draw anew each time


def load(folder):
    spec = importlib.util.spec_from_file_location("of_" + folder.replace("/", "_"), TESTS / folder / "hybrid.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def are_one_process(folder, ranks, cases, steps):
    logs = passes(folder, ranks, TESTS / "ranks/_hybrid.py", "--steps", steps, *map(load("ranks").text_of, cases),
                  environment={"PYTHONWARNINGS": "ignore"})
    assert logs.count("model=") == len(cases) and "BAD" not in logs


@pytest.mark.parametrize("ranks, count, steps", [(2, 5, 6), (4, 4, 4)])
def test_drawn_combinations_are_one_process(tmp_path, ranks, count, steps):
    draws, rng = load("ranks"), random.Random(f"{SEED} {ranks}")
    print("seed", SEED)  # again: PROA_SEED=…
    are_one_process(tmp_path, ranks, [draws.draw(rng, ranks) for _ in range(count)], steps)


@pytest.mark.parametrize("ranks, case", [(4, {"pp": 2, "mp": 2, "amp": "O2", "optimizer": "lamb", "merge": 2}),  # a composed step, autocast
                                         (2, {"sharding": 2, "level": "os_g", "optimizer": "sgd"}),  # reduced: blocked gradients
                                         (2, {"pp": 2, "dtype": "float64"}),  # the loss, sent in float32
                                         # the first stage has no biases: an empty group takes part in norms
                                         (4, {"model": "bert", "pp": 4, "clip": "global", "groups": 1})])
def test_combinations_that_were_wrong_once_are_one_process(tmp_path, ranks, case):
    are_one_process(tmp_path, ranks, [{"model": "resnet", **case}], 3)


@pytest.mark.parametrize("ranks", [4, 2])
def test_a_killed_sharded_pipeline_goes_on(ranks, monkeypatch):
    """Four ranks, one of them killed, go on as four or as two."""
    monkeypatch.setenv("PROA_KILL_STEPS", "6")
    kills = load("robustness/kill")
    print("seed", SEED)
    assert kills.trial(random.Random(SEED), [ranks], 1, None, kills.one_process()) == []
