#!/usr/bin/env python3
"""Runs models of public repositories, unmodified, on real Paddle 2.6.2 and on Proa with the same weights, and compares them
stage by stage. CONTRIBUTING.md says how to get the folder of snapshots; nothing of them belongs in this repository.

    tests/referee/applications.py FOLDER [--only REPOSITORY[/MODEL] …] [--again proa] [--out build/referee/applications]

FOLDER holds one folder a repository; recipes/<repository>.py builds its models with small configurations. Writes OUT/table.tsv
(repository, model, stage, outcome, cause, CPU seconds on both, one thread each) and prints counts and causes. `--again proa` keeps what Paddle
computed before."""
import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Relative to the largest magnitude of the tensor; gradients and moves of weights also to the model's largest.
TOLERANCE = {"forward": 1e-3, "gradients": 1e-2, "steps": 1e-2, "own": 1e-3, "theirs": 1e-3, "ours": 1e-3}
# Paddle's own change under weights larger by 1e-6 is noise of some float32 roundings; another order of sums makes more of them.
AMPLIFIED = 4
STAGES = ["build", "forward", "gradients", "steps", "export", "own", "theirs", "ours"]
# Files that a stage compares: of Paddle's side and of Proa's.
PAIRS = {"forward": ("paddle.forward", "proa.forward"), "gradients": ("paddle.gradients", "proa.gradients"),
         "steps": ("paddle.steps", "proa.steps"), "own": ("paddle.forward", "proa.own"),
         "theirs": ("paddle.own", "proa.theirs"), "ours": ("proa.own", "paddle.ours")}
# Files that count, too: of real Paddle's other way to run, where its predictor and its eager run differ (or order outputs differently).
OTHERWISE = {"own": ("paddle.own", "proa.own"), "theirs": ("paddle.forward", "proa.theirs"), "ours": ("paddle.own", "paddle.ours")}
# Stages of the table by the stages that the processes run.
RUNS = {"build": "build", "forward": "forward", "gradients": "train", "steps": "train", "export": "export", "own": "own",
        "theirs": "theirs", "ours": "ours"}


def run(args, recipe, side, what, models):
    """Runs models of a recipe on one side, in one process that forks for each."""
    folder = args.folder / recipe.stem
    work = args.out / recipe.stem
    work.mkdir(parents=True, exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment.update(OMP_NUM_THREADS="1", PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python", PYTHONDONTWRITEBYTECODE="1", GLOG_minloglevel="3",
                       HOME=str(args.out / "home"))
    (args.out / "home").mkdir(exist_ok=True)
    extra = [str(args.site)] if args.site else []
    command = [args.python]
    if side == "proa":
        extra.insert(0, str(pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve() / "python"))
        command += ["-m", "proa"]
    environment["PYTHONPATH"] = os.pathsep.join(extra)
    command += [str(HERE / "one_application.py"), str(folder), str(recipe), str(work), what, side, str(args.seconds), *models]
    with open(work / f"{side}.{what}.log", "w") as log:
        subprocess.run(command, env=environment, stdout=log, stderr=log, cwd=args.out)


def report(work, side, what):
    """(stage → entry, how the process ended) of a model's run on one side."""
    path, ended = work / f"{side}.{what}.jsonl", work / f"{side}.{what}.status"
    entries = {}
    if path.exists():
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            entries[entry["stage"]] = entry
    status = int(ended.read_text()) if ended.exists() else 0
    return entries, status


def same(theirs, ours, bound, floor, noise):
    """"" if two lists of arrays agree, else what differs first. `noise`: what an array may be off by itself."""
    if list(theirs) != list(ours):
        odd = sorted(set(theirs) ^ set(ours))
        return f"{len(theirs)} arrays in Paddle, {len(ours)} here ({odd[0] if odd else 'order'})"
    wrong, count = "", 0
    for name in theirs:
        a, b = theirs[name], ours[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            message = f"{name} is {a.dtype}{list(a.shape)} in Paddle, {b.dtype}{list(b.shape)} here"
        elif a.size == 0:
            continue
        elif a.dtype.kind not in "fc":
            off = float(np.mean(a != b))
            message = f"{name}: {off:.2%} of its integers differ" if off > 0.001 else ""
        else:
            a, b = a.astype("complex128" if a.dtype.kind == "c" else "float64"), b.astype(
                "complex128" if b.dtype.kind == "c" else "float64")
            bad = np.isfinite(a) != np.isfinite(b)
            fine = np.isfinite(a) & np.isfinite(b)
            scale = max(np.abs(a[fine]).max(initial=0), floor, 1e-7)
            error = max(np.abs(a - b)[fine].max(initial=0) - AMPLIFIED * float(noise.get(name, 0)), 0) / scale
            message = f"{name} has other infinities" if bad.any() else f"{name} off by {error:.1e}" if error > bound else ""
        if message:
            count += 1
            wrong = wrong or message
    return f"{count} of {len(theirs)} differ: {wrong}" if wrong else ""


def compared(work, stage):
    """"" if the stage's files agree, or the other ones that count; else what differs in the first."""
    first, *others = [differing(work, stage, pair) for pair in (PAIRS[stage], OTHERWISE.get(stage)) if pair]
    return "" if "" in others else first


def differing(work, stage, pair):
    first, second = (work / f"{name}.npz" for name in pair)
    if not first.exists():  # a model that real Paddle cannot call any more, but exports
        first = work / "paddle.own.npz"
    if not first.exists() or not second.exists():
        return "not there"
    theirs, ours = dict(np.load(first)), dict(np.load(second))
    floor = 0.0
    if stage in ("gradients", "steps"):
        largest = max((float(np.abs(a).max()) for a in theirs.values() if a.size and np.isfinite(a).all()), default=0.0)
        floor = 1e-3 * largest
    known = work / f"paddle.{stage if stage in ('gradients', 'steps') else 'forward'}_noise.npz"
    noise = dict(np.load(known)) if known.exists() else {}
    return same(theirs, ours, TOLERANCE[stage], floor, noise)


def judge(work):
    """Rows (stage, outcome, cause, seconds of Paddle, of Proa) of a model."""
    (there, there_status), (here, here_status) = report(work, "paddle", "run"), report(work, "proa", "run")
    last, last_status = report(work, "paddle", "predict")
    rows = []
    for stage in STAGES:
        name = RUNS[stage]
        a = there.get("own" if stage in ("theirs", "ours") else name, {})
        b = last.get("ours", {}) if stage == "ours" else here.get(name, {})
        times = {"forward": "forward", "gradients": "step", "own": "own"}.get(stage)
        seconds = [entry.get("times", {}).get(times, "") if times else entry.get("seconds", "") for entry in (a, b)]
        if a.get("outcome") != "done":
            rows.append((stage, "not in Paddle", a.get("cause", f"process status {there_status}"), *seconds))
        elif b.get("outcome") == "failed":
            rows.append((stage, "error", b["cause"], *seconds))
        elif b.get("outcome") != "done":
            status = last_status if stage == "ours" else here_status
            blame = "skipped" if stage == "ours" and here.get("export", {}).get("outcome") != "done" else \
                "crash" if status & 127 not in (0, 9) else "time" if status & 127 == 9 else "skipped"
            rows.append((stage, blame, f"process status {status}", *seconds))
        elif stage in PAIRS:
            cause = compared(work, stage)
            rows.append((stage, "differs" if cause else "agrees", cause, *seconds))
        else:
            rows.append((stage, "agrees", "", *seconds))
    return rows


def summary(table):
    """Prints what agrees, by stage and by cause."""
    counted = [row for row in table if row[3] != "not in Paddle"]
    agree = [row for row in counted if row[3] == "agrees"]
    models = {row[:2] for row in counted}
    whole = models - {row[:2] for row in counted if row[3] != "agrees"}
    for stage in STAGES:
        rows = [row for row in counted if row[2] == stage]
        print(f"{stage:10} {sum(row[3] == 'agrees' for row in rows):4} of {len(rows)}")
    causes = collections.Counter(f"{row[2]}: {row[3]} {row[4]}"[:230] for row in counted if row[3] not in ("agrees", "skipped"))
    for cause, count in causes.most_common(100):
        print(f"{count:4} {cause}")
    print(f"{len({row[0] for row in models})} repositories, {len(models)} models, {len(whole)} agree in every stage;"
          f" {len(agree)} of {len(counted)} stages ({100 * len(agree) / max(1, len(counted)):.1f} %);"
          f" crashes: {sum(row[3] == 'crash' for row in counted)}")
    for stage, name in (("forward", "forward"), ("gradients", "training step"), ("own", "prediction")):
        ratios = [float(row[6]) / float(row[5]) for row in agree if row[2] == stage and row[5] != "" and row[6] != ""]
        if ratios:
            slow = [row for row in agree if row[2] == stage and row[5] != "" and float(row[6]) > 1.1 * float(row[5])]
            print(f"{name}: {np.median(ratios):.2f} of Paddle's CPU seconds in the median, {max(ratios):.2f} at most;"
                  f" slower by over a tenth: {', '.join(f'{row[0]}/{row[1]} {float(row[6]) / float(row[5]):.2f}' for row in slow) or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--again", choices=["all", "proa", "none"], default="all", help="which sides run again")
    parser.add_argument("--seconds", type=int, default=240, help="time limit of a model on one side")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/referee/applications")
    parser.add_argument("--site", type=pathlib.Path, help="a folder of third-party packages that the repositories import")
    parser.add_argument("--python", default=str(ROOT / ".venv-oracle/bin/python"), help="an interpreter with Paddle 2.6.2")
    args = parser.parse_args()
    args.folder, args.out = args.folder.resolve(), args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    chosen = [one.partition("/") for one in args.only]
    table = []
    for recipe in sorted((HERE / "recipes").glob("*.py")):
        names = [model for name, _, model in chosen if name == recipe.stem]
        if (chosen and not names) or not (args.folder / recipe.stem).exists():
            continue
        names = [name for name in names if name]
        work = args.out / recipe.stem
        if args.again == "all":
            for name in names or ["."]:
                shutil.rmtree(work / name, ignore_errors=True)
            run(args, recipe, "paddle", "run", names)
        if args.again != "none":
            for name in names or ["*"]:
                for old in work.glob(f"{name}/p*.*"):
                    if old.name.startswith(("proa.", "paddle.ours", "paddle.predict")):
                        old.unlink()
            run(args, recipe, "proa", "run", names)
            written = [path.parent.name for path in work.glob("*/proa.model.pdmodel") if not names or path.parent.name in names]
            if written:
                run(args, recipe, "paddle", "predict", written)
        for folder in sorted(path for path in work.iterdir() if path.is_dir()):
            if not names or folder.name in names:
                table += [(recipe.stem, folder.name, *row) for row in judge(folder)]
    with open(args.out / "table.tsv", "w") as out:
        print("repository", "model", "stage", "outcome", "cause", "seconds of Paddle", "of Proa", sep="\t", file=out)
        for row in table:
            print(*(str(cell).replace("\t", " ") for cell in row), sep="\t", file=out)
    summary(table)
    return 0


sys.exit(main())
