"""Data parallelism against one process at 1, 2, 4 and 8 ranks (_training.py, 50 steps a case), and random collectives at 2, 4 and 8
(_fuzz.py): a sample of two minutes that a seed draws, or with --all every case and 10,000 calls.

    python tests/dist/everything.py [--all] [--seed N]
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MODELS, MODES, PRECISIONS = ("resnet", "lstm", "transformer"), ("eager", "to_static", "static"), ("float32", "bfloat16")
DRAWN = {1: 1, 2: 3, 4: 2, 8: 1}  # cases by number of ranks


def launch(ranks, script, *arguments):
    print(f"-- {script} {' '.join(arguments)}, {ranks} ranks", flush=True)
    with tempfile.TemporaryDirectory(prefix="proa_dist_") as logs:
        return subprocess.run([sys.executable, "-m", "proa.distributed.launch", "--nproc_per_node", str(ranks), "--log_dir", logs,
                               str(HERE / script), *arguments], check=False).returncode != 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    if options.all:
        bad = sum(launch(ranks, "_training.py") for ranks in DRAWN) + sum(launch(ranks, "_fuzz.py") for ranks in (2, 4, 8))
        return bad > 0
    print("seed", options.seed, flush=True)
    rng, bad = random.Random(options.seed), 0
    every = [f"{a}/{b}/{c}" for a in MODELS for b in MODES for c in PRECISIONS]
    drawn = rng.sample(every, sum(DRAWN.values()))
    for ranks, count in DRAWN.items():
        bad += launch(ranks, "_training.py", *[drawn.pop() for _ in range(count)])
    return bad + launch(rng.choice((2, 4)), "_fuzz.py", "2000", str(options.seed)) > 0


sys.exit(main())
