#!/usr/bin/env python3
"""How much of Paddle 2.0/2.1's public API Proa has, by area: names present, with a compatible signature, and
shown by a parity case that agrees (build/parity/*.txt, written by tests/parity). Needs a build; standard library."""
import argparse
import ast
import collections
import importlib
import inspect
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ("names", "present", "compatible", "shown")


def read_names(path):
    """(name, kind, signature, area) of every row."""
    rows = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [(r[0], r[1], r[2], r[4]) for r in rows]


def resolve(name):
    """The object called `name` in Proa, and the class it was found on; LookupError if there is none."""
    parts = name.split(".")
    found, owner = importlib.import_module("proa"), None
    path = "proa"
    for part in parts[1:]:
        path += "." + part
        try:
            value = getattr(found, part)
        except AttributeError:
            if not inspect.ismodule(found):
                raise LookupError(name) from None
            try:
                value = importlib.import_module(path)
            except ImportError:
                raise LookupError(name) from None
        owner = found if inspect.isclass(found) else None
        found = value
    return found, owner


def wanted_parameters(signature):
    """Parameter names in order, and those that have a default; None if the table's text is no Python."""
    text = signature.rpartition("->")[0] if "->" in signature else signature
    try:
        arguments = ast.parse(f"def f{text.strip()}: pass").body[0].args
    except SyntaxError:
        return None
    names = [a.arg for a in arguments.posonlyargs + arguments.args]
    optional = set(names[len(names) - len(arguments.defaults):]) if arguments.defaults else set()
    return [n for n in names if n != "self"], optional


def compatible(found, kind, signature):
    """Whether every call that the table's signature allows is accepted: the same names in the same order;
    a parameter with a default there has one here."""
    if kind in ("module", "property") or not signature:
        return True
    wanted = wanted_parameters(signature)
    if wanted is None:
        return True
    try:
        own = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):
        return False
    own = [p for p in own if p.name not in ("self", "cls")]
    kinds = {p.kind for p in own}
    names = [p.name for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = inspect.Parameter.VAR_POSITIONAL in kinds and inspect.Parameter.VAR_KEYWORD in kinds
    order, optional = wanted
    if names[:len(order)] != order and not (rest and names == order[:len(names)]):
        return False
    return all(p.default is not p.empty for p in own if p.name in optional) and all(
        p.default is not p.empty for p in own[len(order):] if p.kind == p.POSITIONAL_OR_KEYWORD)


def survey(names, shown):
    """Counts by area, and (name, what is wrong) of the names that are not covered."""
    counts, missing = collections.defaultdict(collections.Counter), []
    for name, kind, signature, area in names:
        counts[area]["names"] += 1
        try:
            found, _ = resolve(name)
        except LookupError:
            missing.append((name, "absent"))
            continue
        counts[area]["present"] += 1
        fits = compatible(found, kind, signature)
        counts[area]["compatible"] += fits
        counts[area]["shown"] += name in shown
        if not fits:
            missing.append((name, f"signature: Paddle has {signature}"))
        elif name not in shown:
            missing.append((name, "not shown by a parity case"))
    return counts, missing


def table(counts):
    """One line an area and one for all."""
    total = sum((counts[a] for a in counts), collections.Counter())
    lines = [f"{'area':<20}" + "".join(f"{c:>12}" for c in COLUMNS)]
    for area, row in [*sorted(counts.items()), ("all", total)]:
        lines.append(f"{area:<20}" + "".join(f"{row[c]:>12}" for c in COLUMNS))
    return "\n".join(lines)


def drops(counts, floor):
    """What lies below the floor: lines `area column count`."""
    below = []
    for line in floor.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        area, column, least = line.split()
        if counts[area][column] < int(least):
            below.append(f"{area}: {column} is {counts[area][column]}, the floor is {least}")
    return below


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.environ.get("PROA_BUILD", ROOT / "build"), type=pathlib.Path)
    parser.add_argument("--names", default=ROOT / "tests/parity/paddle_api.tsv", type=pathlib.Path)
    parser.add_argument("--missing", action="store_true", help="list the names that are not covered, and why")
    parser.add_argument("--floor", type=pathlib.Path, help="exit 1 if a count lies below this file's")
    parser.add_argument("--raise-floor", type=pathlib.Path, help="write the counts as the new floor")
    options = parser.parse_args()
    sys.path.insert(0, str(options.build / "python"))
    shown = {n for f in (options.build / "parity").glob("*.txt") for n in f.read_text().split()}
    counts, missing = survey(read_names(options.names), shown)
    print(table(counts))
    if options.missing:
        print(*(f"{name}: {why}" for name, why in missing), sep="\n")
    if options.raise_floor:
        below = drops(counts, options.raise_floor) if options.raise_floor.exists() else []
        if below:
            print(*below, "a floor may only rise", sep="\n", file=sys.stderr)
            return 1
        lines = [f"{a} {c} {counts[a][c]}" for a in sorted(counts) for c in COLUMNS[1:] if counts[a][c]]
        options.raise_floor.write_text("# tools/api_coverage.py --floor: counts that may only rise\n"
                                       + "\n".join(lines) + "\n")
    if options.floor:
        below = drops(counts, options.floor)
        print(*below, sep="\n", file=sys.stderr)
        return 1 if below else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
