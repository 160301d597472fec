"""`proa launch`: ranks of any program, one failure ends all, restarts, signals; a checkpoint that another number of ranks
goes on from."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import proa as paddle

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()


def launch(*words, status=0, **more):
    done = subprocess.run([BUILD / "bin/proa", "launch", *map(str, words)], capture_output=True, text=True, timeout=200, **more)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def test_every_rank_runs(tmp_path):
    out = launch("--ranks", 3, "--log", tmp_path / "logs", "sh", "-c", "echo $PROA_RANK of $PROA_SIZE $1", "sh", "--given")
    assert out.stdout == ""
    assert [(tmp_path / f"logs/rank.{r}.log").read_text() for r in range(3)] == [f"{r} of 3 --given\n" for r in range(3)]


def test_one_failure_ends_all(tmp_path):
    begin = time.monotonic()
    done = launch("--ranks", 3, "sh", "-c", "[ $PROA_RANK = 1 ] && exit 7; exec sleep 60", status=2)
    assert "rank 1 ended with exit status 7" in done.stderr and time.monotonic() - begin < 30
    assert "rank 0 was ended by signal 9" in launch("--ranks", 1, "sh", "-c", "kill -9 $$", status=2).stderr
    assert "rank 0 ended with exit status 127" in launch("--ranks", 1, "/no/such/program", status=2).stderr
    for words in ([], ["--ranks", "0", "true"], ["--ranks", "9999", "true"], ["--what", "true"]):
        assert launch(*words, status=2).stderr.startswith("proa")


def test_restarts(tmp_path):
    done = launch("--ranks", 2, "--restarts", 1, "sh", "-c", "echo $PROA_INCARNATION; [ $PROA_INCARNATION = 1 ]")
    assert "starting all ranks again (1 of 1)" in done.stderr and "1\n" in done.stdout


def test_a_signal_ends_the_ranks(tmp_path):
    process = subprocess.Popen([BUILD / "bin/proa", "launch", "--ranks", "2", "sh", "-c", "echo $$ > pid.$PROA_RANK; exec sleep 60"],
                               cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not all((tmp_path / f"pid.{r}").exists() and (tmp_path / f"pid.{r}").read_text() for r in range(2)):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert "ended by signal 15" in process.communicate(timeout=60)[1]
    for r in range(2):
        assert not pathlib.Path(f"/proc/{(tmp_path / f'pid.{r}').read_text().strip()}").exists()


def test_python_joins(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import proa as paddle\nimport proa.distributed as dist\ndist.init_parallel_env()\nx = paddle.ones([1])\n"
                      "dist.all_reduce(x)\nassert float(x) == dist.get_world_size() == 2\n")
    package = os.path.dirname(os.path.dirname(paddle.__file__))
    launch("--ranks", 2, sys.executable, script, env={**os.environ, "PYTHONPATH": package})


def test_another_number_of_ranks_goes_on(tmp_path):
    """The example's checkpoint; all ranks hold the same weights, and the loss goes on falling."""
    program = BUILD / "data_parallel" if (BUILD / "data_parallel").exists() else shutil.which("data_parallel", path=BUILD / "examples")
    if program is None:
        pytest.fail("the examples are not built")
    losses = []
    for ranks in (3, 1, 2):
        out = launch("--ranks", ranks, program, ROOT / "examples/data", ranks, tmp_path / "checkpoint").stdout
        found = re.findall(r"loss ([\d.]+), sum of weights ([\d.]+)", out)
        assert len(found) == ranks and len({weights for _, weights in found}) == 1, out
        losses.append(sum(float(loss) for loss, _ in found) / ranks)
    assert losses[0] > losses[1] > losses[2], losses
