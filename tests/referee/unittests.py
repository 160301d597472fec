#!/usr/bin/env python3
"""Runs folders of Paddle's own unit tests, unmodified, on Proa: each file in a process of its own, with a time limit.
CONTRIBUTING.md says how to get such folders; nothing of them belongs in this repository.

    tests/referee/unittests.py FOLDER … [--only PATTERN …] [--without PATTERN …] [--jobs 2] [--seconds 120]
                               [--out build/referee/unittests]

Writes OUT/results.tsv (file, test, outcome, place, cause) and prints counts, then the causes by how many tests they
stop. Files and methods that match exceptions.txt are counted apart, with the reason that stands there."""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def exceptions():
    """(pattern, reason) of each line of exceptions.txt."""
    lines = (HERE / "exceptions.txt").read_text().splitlines()
    return [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]


def excepted(name, listed):
    """The reason why a file (test_x.py) or one of its methods (test_x.py::Class.method) is left out, or None."""
    return next((reason for pattern, reason in listed if fnmatch.fnmatch(name, pattern)), None)


def static_files(args):
    """The files that Paddle's runner runs in static mode: the list of its tools folder."""
    given = args.static_list or next((up / "tools/static_mode_white_list.py" for up in args.folder[0].resolve().parents
                                      if (up / "tools/static_mode_white_list.py").exists()), None)
    if given is None:
        sys.exit("referee: tools/static_mode_white_list.py of the snapshot is needed: give --static-list")
    return set(re.findall(r"['\"](test_\w+)['\"]", given.read_text()))


def methods_of(path):
    """The number of test methods of a file that cannot be imported."""
    return max(1, len(re.findall(r"^\s+def test\w*\(", path.read_text(errors="replace"), re.M)))


def run_file(path, args):
    """Rows (test, outcome, place, cause) of a file."""
    imports = [ROOT / "build/python", path.parent, *(folder.resolve() for folder in args.folder)]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, imports)), PYTHONDONTWRITEBYTECODE="1",
                       FLAGS_set_to_1d="1")  # Paddle's own flag for scripts of before 2.5, in which no tensor was 0-D
    with tempfile.TemporaryDirectory(prefix="referee-") as scratch:
        report = pathlib.Path(scratch, "report.jsonl")
        command = [args.python, "-m", "proa", str(HERE / "one_file.py"), str(path), str(report),
                   "static" if path.stem in args.static else "dynamic"]
        ended = ""
        with open(os.path.join(scratch, "output.txt"), "w+b") as output:
            try:
                code = subprocess.run(command, cwd=scratch, env=environment, timeout=args.seconds, stdout=output,
                                      stderr=output).returncode
                ended = f"process ended with {code}" if code else ""
            except subprocess.TimeoutExpired:
                ended = f"no end within {args.seconds} s"
        entries = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    if any(entry["outcome"] == "import" for entry in entries):
        only = entries[-1]
        return [("*", "import", only["place"], only["cause"])] * methods_of(path)
    rows, open_test = [], None
    for entry in entries:
        if entry["outcome"] == "started":
            open_test = entry["test"]
            continue
        open_test = None
        rows.append((entry["test"], entry["outcome"], entry.get("place", ""), entry.get("cause", "")))
    if open_test is not None:
        rows.append((open_test, "stopped", "", ended))
    if not rows and ended:
        return [("*", "stopped", "", ended)] * methods_of(path)
    return rows


def general(cause):
    """A cause without its names and numbers, so that its kin are counted together."""
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'", lambda m: m[0] if "attribute" in cause or "import" in cause else "'…'",
                                      cause))[:140]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="+")
    parser.add_argument("--only", nargs="*", default=["test_*.py"])
    parser.add_argument("--without", nargs="*", default=[], help="patterns of files that another run has")
    parser.add_argument("--static-list", type=pathlib.Path, help="tools/static_mode_white_list.py of the same snapshot "
                        "(default: where it stands there)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/referee/unittests")
    parser.add_argument("--python", default=str(ROOT / ".venv-oracle/bin/python"),
                        help="an interpreter with NumPy 1.x, six and SciPy, as the tests were written for")
    args = parser.parse_args()
    args.static = static_files(args)
    left_out, listed = collections.Counter(), exceptions()
    files = []
    for path in (path for folder in args.folder for path in sorted(folder.resolve().glob("test_*.py"))):
        wanted, other = (any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns)
                         for patterns in (args.only, args.without))
        reason = excepted(path.name, listed)
        if wanted and not other and reason is None:
            files.append(path)
        elif wanted and not other:
            left_out[f"files left out: {reason}"] += 1
    args.out.mkdir(parents=True, exist_ok=True)
    outcomes, causes = collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool, open(args.out / "results.tsv", "w") as table:
        for path, rows in zip(files, pool.map(lambda path: run_file(path, args), files)):
            for test, outcome, where, cause in rows:
                reason = excepted(f"{path.name}::{test}", listed)
                if reason is not None:
                    left_out[f"methods left out: {reason}"] += 1
                    continue
                outcomes[outcome] += 1
                if outcome not in ("passed", "skipped"):
                    causes[f"{general(cause)}  [{where.split(':')[0]}]"] += 1
                print(path.name, test, outcome, where, cause.replace("\t", " "), sep="\t", file=table, flush=True)
    for cause, count in causes.most_common(60):
        print(f"{count:5} {cause}")
    for reason, count in left_out.most_common():
        print(f"{count:5} {reason}")
    ran = sum(outcomes.values()) - outcomes["skipped"]
    print(f"{len(files)} files: {dict(outcomes)}; {outcomes['passed']} of {ran} methods pass"
          f" ({100 * outcomes['passed'] / max(ran, 1):.1f} %)")
    return 0


sys.exit(main())
