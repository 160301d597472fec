#!/usr/bin/env python3
"""Runs the examples in the docstrings of an installed Paddle on that Paddle and on Proa, and compares what they print.

    tests/referee/docstrings.py [--only PATTERN …] [--jobs 2] [--again proa] [--out build/referee/docstrings]

An example counts if Paddle's build for CPUs runs it. Writes OUT/results.tsv (docstring, verdict, cause, Paddle's and Proa's
output where they differ) and prints the counts. "same": Proa runs all of the docstring's examples and prints what Paddle prints, numbers to
four digits, and without addresses of objects; "other numbers": the same but for numbers, as where they are random; "prints otherwise";
"error", "crash", "late"."""
import argparse
import ast
import collections
import concurrent.futures
import doctest
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
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
DIRECTIVE = re.compile(r"#\s*x?doctest:\s*([+-])(SKIP|REQUIRES)")
RUN = ("same", "other numbers", "prints otherwise")  # verdicts of examples that run
# Examples of what is not compared, by the path of their docstring.
LEFT_OUT = ["paddle.distributed.*", "paddle.incubate.distributed.*", "paddle.cinn.*", "paddle.utils.cpp_extension.*",
            "paddle.vision.datasets.*", "paddle.text.datasets.*", "paddle.audio.datasets.*", "paddle.hub.*", "paddle.tests.*",
            "paddle.base.*", "paddle.dataset.*", "paddle.device.*", "paddle.profiler.*"]


def docstrings(folder):
    """(path such as paddle.tensor.math.add, docstring) of every module, class and function."""
    for file in sorted(pathlib.Path(folder).rglob("*.py")):
        module = "paddle." + ".".join(file.relative_to(folder).with_suffix("").parts)
        if any(fnmatch.fnmatch(module, pattern) for pattern in LEFT_OUT):
            continue
        stack = [(module, ast.parse(file.read_text(errors="replace")))]
        while stack:
            path, node = stack.pop()
            for child in ast.iter_child_nodes(node):
                if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                    name = f"{path}.{child.name}"
                    yield name, ast.get_docstring(child) or ""
                    stack.append((name, child))


def examples_of(text):
    """The sources of a docstring's examples, but for those that it says to skip or that need a device or several processes."""
    found, skipping = [], False
    for one in doctest.DocTestParser().get_examples(text):
        directive = DIRECTIVE.search(one.source)
        if directive and one.source.lstrip().startswith("#"):
            skipping = directive[1] == "+"
        elif not skipping and not directive:
            found.append(one.source)
    return found


def cases_of(options):
    folder = subprocess.run([options.oracle, "-c", "import paddle; print(paddle.__path__[0])"], capture_output=True, text=True,
                            check=True).stdout.split()[-1]
    for path, text in docstrings(folder):
        if options.only and not any(fnmatch.fnmatch(path, pattern) for pattern in options.only):
            continue
        try:
            examples = examples_of(text)
        except ValueError:  # of a form that doctest does not take
            continue
        if examples:
            yield {"id": path, "examples": examples}


def run_part(options, side, cases):
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", GLOG_minloglevel="3")
    build = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build"))
    env["PYTHONPATH"] = str(build.resolve() / "python") if side == "proa" else ""
    worker = [str(HERE / "docstrings_worker.py")]
    command = [options.python, "-m", "proa", *worker] if side == "proa" else [options.oracle, *worker]
    with tempfile.TemporaryDirectory(prefix="docstrings-") as scratch:
        given, report = pathlib.Path(scratch, "cases.jsonl"), pathlib.Path(scratch, "report.jsonl")
        given.write_text("".join(json.dumps(one) + "\n" for one in cases))
        done = subprocess.run([*command, str(given), str(report), str(options.seconds)], env=dict(env, TMPDIR=scratch), cwd=scratch,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"referee: the worker of {side} ends with {done.returncode}:\n{done.stderr[-2000:]}")
        return [json.loads(line) for line in report.read_text().splitlines()]


def run_side(options, side, cases):
    """{docstring: its outcome}, from the last run if it is not to be made again."""
    kept = options.out / f"{side}.json"
    if options.again and side not in options.again and kept.exists():
        return json.loads(kept.read_text())
    parts = [cases[i::options.jobs] for i in range(options.jobs)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = {one["id"]: one for part in pool.map(lambda part: run_part(options, side, part), parts) for one in part}
    kept.write_text(json.dumps(found))
    return found


def plain(text):
    """A text without white space, where objects are, and what differs between two packages of one interface by name."""
    text = re.sub(r"<[\w.]+ object at 0x[0-9a-f]+>", "<object>", text).replace("proa.", "paddle.")
    return "".join(re.sub(r"\b\d+(?:\.\d+)?ms/step", "ms/step", text).split())


def compared(a, b):
    """ "same" (but for the last digits of numbers), "other numbers" or "prints otherwise"."""
    a, b = plain(a), plain(b)
    x, y = NUMBER.findall(a), NUMBER.findall(b)
    if a == b:
        return "same"
    if NUMBER.sub("#", a).replace("-#", "#") != NUMBER.sub("#", b).replace("-#", "#"):
        return "prints otherwise"
    close = all(abs(float(m) - float(n)) <= 1e-5 + 1e-4 * abs(float(m)) for m, n in zip(x, y))
    return "same" if close else "other numbers"


def verdict(theirs, ours):
    """(verdict, cause, Paddle's text, Proa's)."""
    if ours["outcome"] != "passed":
        return ours["outcome"], ours["cause"], "", ""
    worst = "same", "", "", ""
    for a, b in zip(theirs["got"], ours["got"]):
        found = compared(a, b)
        if found == "prints otherwise":
            return found, "", a, b
        if found != "same" and worst[0] == "same":
            worst = found, "", a, b
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--again", action="append", default=[], choices=["paddle", "proa"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--oracle", default=os.environ.get("PROA_ORACLE", str(ROOT / ".venv-oracle/bin/python")))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/referee/docstrings")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cases = list(cases_of(options))
    theirs, ours = (run_side(options, side, cases) for side in ("paddle", "proa"))
    rows = [(one["id"], *verdict(theirs[one["id"]], ours[one["id"]])) for one in cases
            if theirs.get(one["id"], {}).get("outcome") == "passed" and one["id"] in ours]
    with open(options.out / "results.tsv", "w") as into:
        for row in rows:
            into.write("\t".join(re.sub(r"\s+", " ", text)[:600] for text in row) + "\n")
    counts = collections.Counter(row[1] for row in rows)
    for row in rows:
        if row[1] in ("error", "crash", "late"):
            print(f"{row[1]:6} {row[0]}: {row[2][:200]}")
    print(f"docstrings: {len(cases)} with examples, {len(rows)} of which Paddle runs: {dict(counts)}; Proa runs "
          f"{sum(counts[word] for word in RUN) / max(len(rows), 1):.1%}, and prints the same in {counts['same'] / max(len(rows), 1):.1%}")


if __name__ == "__main__":
    main()
