"""Hybrid parallelism against one process: draws combinations of data, tensor, pipeline and sharded parallelism, AMP, recompute,
gradient merge, clips and optimizers on 2, 4 and 8 processes (_hybrid.py trains them), and prints the seed. A combination that is not allowed
must be an error that names both switches. A sample of 50 steps each, or with --all 200 cases.

    python tests/ranks/hybrid.py [--all] [--seed N] [--cases N] [--steps N] [--ranks N]
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
AXES, ROWS, PIECES = ("dp", "mp", "pp", "sharding"), 32, 7


def degrees(rng, ranks):
    """A random division of the ranks: tensor parallelism and stages are four at most."""
    while True:
        left, found = ranks, {}
        for axis in rng.sample(AXES, 4):
            found[axis] = rng.choice([n for n in (1, 2, 4, 8) if left % n == 0])
            left //= found[axis]
        if left == 1 and max(found["mp"], found["pp"]) <= 4:
            return found


def draw(rng, ranks):
    """A random case; `refused` has the words of the error where there must be one."""
    case = {"model": rng.choice(["gpt", "bert", "resnet"]), **degrees(rng, ranks)}
    case["level"] = rng.choice(["fleet", "os", "os_g", "p_g_os"]) if case["sharding"] > 1 else "fleet"
    case["amp"] = rng.choice(["O0", "O0", "O0", "O1", "O2", "float16"])
    case["recompute"], case["clip"] = rng.choice([0, 1]), rng.choice(["none", "global", "global", "norm", "value"])
    case["optimizer"] = rng.choice(["momentum", "adamw", "sgd", "lamb"])
    case["groups"] = int(case["sharding"] == 1 and rng.random() < 0.3)
    case["merge"] = rng.choice([n for n in (1, 2, 4) if ROWS // case["dp"] // case["sharding"] % n == 0])
    if case["pp"] > 1:
        case["schedule"] = rng.choice(["1F1B", "1F1B", "F-then-B"])
        case["chunks"] = 2 if case["pp"] * 2 <= PIECES and case["merge"] % case["pp"] == 0 and rng.random() < 0.4 else 1
    case["dtype"] = dtype(rng, case)
    case["refused"] = refusal(case)
    return case


def dtype(rng, case):
    """Float32, or float64 where 50 steps make a large difference of float32's rounding. A ReLU's slope jumps at 0, so that another
    order of sums turns an element over and becomes 2e-2: ResNets have ReLUs in float64, and SiLUs in float32. BERTs under momentum
    without a clip are at the edge of stability: 1e-7 in the weights of one process becomes 2e-5."""
    if case["amp"] != "O0":
        return "float32"
    if case["model"] == "bert" and case["optimizer"] == "momentum" and case["clip"] == "none":
        return "float64"
    return rng.choice(["float32", "float64"]) if case["model"] == "resnet" else "float32"


def refusal(case):
    """Words that the error must have, joined by +; empty: the case is allowed."""
    if case["level"] != "fleet" and case["pp"] > 1:
        return f"{case['level']}+pp_degree"
    return ""


def text_of(case):
    return ",".join(f"{key}={value}" for key, value in case.items() if value != "")


def launch(ranks, cases, steps):
    """Whether the cases fail, one after the other in one job."""
    with tempfile.TemporaryDirectory(prefix="proa_hybrid_") as logs:
        job = subprocess.run([sys.executable, "-m", "proa.distributed.launch", "--nproc_per_node", str(ranks), "--log_dir", logs,
                              str(HERE / "_hybrid.py"), "--steps", str(steps), *map(text_of, cases)], check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"})
    lines = [line for line in job.stdout.splitlines() if job.returncode or "model=" in line]
    print(*lines, sep="\n", flush=True)
    if job.returncode:
        print("failed, of", *map(text_of, cases), sep="\n    ", flush=True)
    return job.returncode != 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="200 cases")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--cases", type=int, default=9)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--ranks", type=int, choices=(2, 4, 8), help="only this number")
    options = parser.parse_args()
    count = 200 if options.all else options.cases
    rng = random.Random(options.seed)
    print("seed", options.seed, flush=True)
    drawn = [draw(rng, options.ranks or (2, 4, 8)[i % 3]) for i in range(count)]
    bad = 0
    for ranks in (2, 4, 8):
        cases = [case for case in drawn if case["dp"] * case["mp"] * case["pp"] * case["sharding"] == ranks]
        for at in range(0, len(cases), 5):
            bad += launch(ranks, cases[at:at + 5], options.steps)
    print(f"{count} cases drawn, {bad} jobs bad", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
