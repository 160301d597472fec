"""The digits example: at least 98.5 % for each of three seeds, and real Paddle's predictor finds the same share
right with the exported files. Needs the oracle's environment and the built examples."""
import os
import re
import subprocess

import pytest

import programs
import train_steps_cases as cases

ORACLE = programs.ROOT / ".venv-oracle/bin/python"
DATA = programs.ROOT / "examples/data"
PREDICT = """
import csv, sys
import numpy as np
from paddle.inference import Config, create_predictor
rows = np.array(list(csv.reader(open(sys.argv[2])))[1:], dtype="float32")
config = Config(sys.argv[1] + "/digits.pdmodel", sys.argv[1] + "/digits.pdiparams")
config.disable_glog_info()
predictor = create_predictor(config)
predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu((rows[:, :64] / 16).reshape(-1, 1, 8, 8))
predictor.run()
scores = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
print(f"{100 * (scores.argmax(1) == rows[:, 64]).mean():.1f}")
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_digits_are_learnt_and_exported(tmp_path, seed):
    program = cases.build_folder() / "examples/digits_cnn"
    run = subprocess.run([program, DATA, tmp_path, str(seed)], capture_output=True, text=True,
                         env={"GOMP_SPINCOUNT": "1000", **os.environ})
    assert run.returncode == 0, run.stderr
    accuracy = re.search(r"test accuracy: ([\d.]+) %", run.stdout)[1]
    assert float(accuracy) >= 98.5
    assert not (tmp_path / "digits.ckpt").exists()
    assert len((tmp_path / "loss.csv").read_text().splitlines()) == 31
    if not ORACLE.exists():
        pytest.skip("no oracle environment")
    seen = subprocess.run([ORACLE, "-c", PREDICT, tmp_path, DATA / "digits_test.csv"], capture_output=True, text=True)
    assert seen.stdout.split()[-1:] == [accuracy], seen.stderr
