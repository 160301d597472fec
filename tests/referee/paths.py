#!/usr/bin/env python3
"""Scans folders of other people's programs for every `paddle.` path they name, and resolves each in real Paddle and in
Proa. A path that Paddle has and Proa has not stands in paths_missing.txt with its reason, or is a finding.

    tests/referee/paths.py FOLDER… [--out build/referee/paths.tsv]

Writes a table (path, uses, repositories, in Paddle, in Proa, reason) and prints the findings; the exit status counts them."""
import argparse
import ast
import collections
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

RESOLVE = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
import paddle
def resolves(path):
    parts = path.split(".")
    value, here = paddle, "paddle"
    for part in parts[1:]:
        here += "." + part
        try:
            value = getattr(value, part)
        except Exception:
            try:
                value = importlib.import_module(here)
            except BaseException:
                return False
    return True
json.dump({path: resolves(path) for path in json.load(open(sys.argv[1]))}, open(sys.argv[2], "w"))
"""


class Names(ast.NodeVisitor):
    """Collects paths of one file: imports, and attribute chains that begin with a name an import of paddle bound."""

    def __init__(self):
        self.bound, self.found = {}, collections.Counter()

    def visit_Import(self, node):
        for item in node.names:
            if item.name.split(".")[0] == "paddle":
                self.found[item.name] += 1
                self.bound[item.asname or "paddle"] = item.name if item.asname else "paddle"

    def visit_ImportFrom(self, node):
        if node.level or not node.module or node.module.split(".")[0] != "paddle":
            return
        for item in node.names:
            path = node.module if item.name == "*" else f"{node.module}.{item.name}"
            self.found[path] += 1
            if item.name != "*":
                self.bound[item.asname or item.name] = path

    def visit_Attribute(self, node):
        parts, base = [], node
        while isinstance(base, ast.Attribute):
            parts.append(base.attr)
            base = base.value
        if isinstance(base, ast.Name) and base.id in self.bound:
            whole = self.bound[base.id].split(".") + parts[::-1]
            # what stands behind a class or a function is an attribute of an object, not a path
            ends = next((i for i, part in enumerate(whole) if part[:1].isupper()), len(whole) - 1)
            self.found[".".join(whole[:ends + 1])] += 1
        else:
            self.visit(base)


def source_of(path):
    text = path.read_text(errors="replace")
    if path.suffix == ".ipynb":
        cells = json.loads(text).get("cells", [])
        lines = [line for cell in cells if cell.get("cell_type") == "code" for line in
                 [*"".join(cell["source"]).splitlines()] if not line.lstrip().startswith(("!", "%"))]
        text = "\n".join(lines)
    return text


def scan(folder, counts, where):
    """Adds the paths of a repository's files; returns how many files could be read."""
    read = 0
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.ipynb")]):
        try:
            tree = ast.parse(source_of(path))
        except (SyntaxError, ValueError, KeyError, OSError):
            continue  # Python 2, or no program
        read += 1
        names = Names()
        names.visit(tree)
        for name, count in names.found.items():
            counts[name] += count
            where[name].add(folder.name)
    return read


def resolved(paths, command, environment):
    with tempfile.TemporaryDirectory() as scratch:
        asked, answer, program = (os.path.join(scratch, name) for name in ("paths.json", "answer.json", "resolve.py"))
        pathlib.Path(asked).write_text(json.dumps(paths))
        pathlib.Path(program).write_text(RESOLVE)
        subprocess.run([*command, program, asked, answer], check=True, env=environment, cwd=scratch,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(pathlib.Path(answer).read_text())


def reasons():
    lines = (HERE / "paths_missing.txt").read_text().splitlines()
    return [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/referee/paths.tsv")
    parser.add_argument("--python", default=str(ROOT / ".venv-oracle/bin/python"), help="an interpreter with Paddle 2.6.2")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    counts, where = collections.Counter(), collections.defaultdict(set)
    files = sum(scan(folder.resolve(), counts, where) for folder in args.folders)
    paths = sorted(counts)
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    theirs = resolved(paths, [args.python], plain)
    ours = resolved(paths, [args.python, "-m", "proa"], dict(plain, PYTHONPATH=str(pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve() / "python")))
    listed, findings, explained = reasons(), [], 0
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with open(args.out, "w") as table:
        print("path", "uses", "repositories", "Paddle", "Proa", "reason", sep="\t", file=table)
        for path in paths:
            reason = ""
            if theirs[path] and not ours[path]:
                reason = next((why for pattern, why in listed if fnmatch.fnmatchcase(path, pattern)), "")
                explained += bool(reason)
                if not reason:
                    findings.append(path)
            print(path, counts[path], ",".join(sorted(where[path])), theirs[path], ours[path], reason, sep="\t", file=table)
    for path in sorted(findings, key=lambda path: -len(where[path])):
        print(f"{counts[path]:5} {len(where[path]):3} {path}")
    held = sum(theirs.values())
    print(f"{files} files, {len(paths)} paths, {held} of them in Paddle 2.6.2: {held - explained - len(findings)} resolve in"
          f" Proa, {explained} are listed with a reason, {len(findings)} are findings")
    return min(len(findings), 100)


sys.exit(main())
