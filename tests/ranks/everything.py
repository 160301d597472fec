"""Data parallelism against one process at 1, 2, 4 and 8 ranks (_training.py, 50 steps a case), random collectives at 2, 4 and 8
(_fuzz.py), and messages against real Paddle's Gloo (_messages.py): a sample of two minutes that a seed draws, or with --all every
case, 10,000 random calls, and every collective with each dtype, reduction and group, over shared memory and over Gloo.

    python tests/ranks/everything.py [--all] [--seed N]
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ORACLE = HERE.parents[1] / ".venv-oracle/bin/python"
MODELS, MODES, PRECISIONS = ("resnet", "lstm", "transformer"), ("eager", "to_static", "static"), ("float32", "bfloat16")
DRAWN = {1: 1, 2: 3, 4: 2, 8: 1}  # cases by number of ranks


def launch(ranks, script, *arguments, launcher=(sys.executable, "-m", "proa.distributed.launch"), gloo=False):
    print(f"-- {script} {' '.join(arguments)}, {ranks} ranks", flush=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **({"PROA_SHM": "0"} if gloo else {})}
    with tempfile.TemporaryDirectory(prefix="proa_dist_") as logs:
        return subprocess.run([*launcher, "--nproc_per_node", str(ranks), "--log_dir", logs, str(HERE / script), *arguments],
                              env=environment, check=False).returncode != 0


def differs_from_paddle(ranks):
    """Whether a message brings another value than on real Paddle."""
    with tempfile.TemporaryDirectory(prefix="proa_dist_") as folder:
        if launch(ranks, "_messages.py", "paddle", f"{folder}/paddle", launcher=(ORACLE, "-m", "paddle.distributed.launch")) or \
                launch(ranks, "_messages.py", "proa", f"{folder}/proa"):
            return True
        bad = count = 0
        for rank in range(ranks):
            theirs, ours = (np.load(f"{folder}/{name}.{rank}.npz") for name in ("paddle", "proa"))
            names = set(theirs.files) | set(ours.files)
            wrong = [n for n in names if n not in theirs or n not in ours or theirs[n].dtype != ours[n].dtype
                     or theirs[n].shape != ours[n].shape or not (theirs[n] == ours[n]).all()]
            print("".join(f"rank {rank}, {n}: differs\n" for n in sorted(wrong)), end="")
            bad, count = bad + len(wrong), count + len(names)
        print(f"{ranks} ranks: {count} messages, {bad} differ from real Paddle's", flush=True)
        return bad > 0


def everything():
    bad = sum(launch(ranks, "_fuzz.py", "every", gloo=gloo) for ranks in (2, 4, 8) for gloo in (False, True))
    bad += sum(launch(ranks, "_fuzz.py", gloo=gloo) for ranks in (2, 4, 8) for gloo in (False, True))
    bad += sum(differs_from_paddle(ranks) for ranks in (2, 4))
    return bad + sum(launch(ranks, "_training.py") for ranks in DRAWN)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    if options.all:
        return everything() > 0
    print("seed", options.seed, flush=True)
    rng, bad = random.Random(options.seed), 0
    every = [f"{a}/{b}/{c}" for a in MODELS for b in MODES for c in PRECISIONS] + [f"resnet/{b}/float64" for b in MODES]
    drawn = rng.sample(every, sum(DRAWN.values()))
    for ranks, count in DRAWN.items():
        bad += launch(ranks, "_training.py", *[drawn.pop() for _ in range(count)])
    return bad + launch(rng.choice((2, 4)), "_fuzz.py", "2000", str(options.seed)) > 0


sys.exit(main())
