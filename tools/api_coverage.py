#!/usr/bin/env python3
"""Coverage of Paddle 2.0/2.1's public API, by area: names present, with a compatible signature, and shown by a parity
case that agrees (build/parity/*.txt, written by tests/parity). Needs a build (but for --check); standard library.
`make coverage` runs the parity tests, raises the floor and writes docs/migration.md."""
import argparse
import ast
import collections
import importlib
import inspect
import os
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ("names", "present", "compatible", "shown")
NAMES = ROOT / "tests/parity/paddle_api.tsv"
PAGE, FLOOR = ROOT / "docs/migration.md", ROOT / "tests/parity/coverage_floor.txt"
MARK = "<!-- From here on tools/api_coverage.py wrote this page: `make coverage`. -->\n"
# Areas of their own within areas of paddle_api.tsv.
GROUPS = {"cpp_extension": r"paddle\.utils\.cpp_extension(\..*)?",
          "quantization": r"paddle\.inference\.Config\.(enable_quantizer|quantizer_config)"}
ABSENT, UNSHOWN = "absent", "not shown by a parity case"


def area_of(name, area):
    """The table's area, unless one of the groups has the name."""
    return next((group for group, names in GROUPS.items() if re.fullmatch(names, name)), area)


def read_names(path=NAMES):
    """(name, kind, signature, area) of every row."""
    rows = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [(r[0], r[1], r[2], area_of(r[0], r[4])) for r in rows]


def share(part, whole):
    return f"{100 * part / whole:.1f} %"


def summary(names, counts):
    """The sentence that both pages have: how many names are there, and shown."""
    present, shown = (sum(counts[a][c] for a in counts) for c in ("present", "shown"))
    return (f"Of the {len(names)} public names of Paddle 2.0 and 2.1 {present} are there ({share(present, len(names))}), {shown} "
            f"are shown to agree by a case that runs on both ({share(shown, len(names))}).")


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
    a parameter with a default there has one here. What C++ bindings call arg0, arg1, … nobody can name, and
    (*args, **kwargs) stands for their overloads."""
    if kind in ("module", "property") or not signature or signature == "(*args, **kwargs)":
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
    order = [n if re.fullmatch(r"arg\d+", o) else o for o, n in zip(order, names)] + order[len(names):]
    if names[:len(order)] != order and not (rest and names == order[:len(names)]):
        return False
    return all(p.default is not p.empty for p in own if p.name in optional) and all(
        p.default is not p.empty for p in own[len(order):] if p.kind == p.POSITIONAL_OR_KEYWORD)


def survey(names, shown):
    """Counts by area, and (name, what is wrong) of the names that are not covered."""
    counts, missing = collections.defaultdict(collections.Counter), []
    # A module is shown by what it holds.
    shown = shown | {".".join(n.split(".")[:k]) for n in shown for k in range(1, n.count(".") + 1)} & {
        name for name, kind, _, _ in names if kind == "module"}
    for name, kind, signature, area in names:
        counts[area]["names"] += 1
        try:
            found, _ = resolve(name)
        except LookupError:
            if name in shown:  # an attribute that only instances have, such as Linear.weight
                counts[area].update(present=1, compatible=1, shown=1)
                continue
            missing.append((name, ABSENT))
            continue
        counts[area]["present"] += 1
        fits = compatible(found, kind, signature)
        counts[area]["compatible"] += fits
        counts[area]["shown"] += name in shown
        if not fits:
            missing.append((name, f"signature: Paddle has {signature}"))
        elif name not in shown:
            missing.append((name, UNSHOWN))
    return counts, missing


def table(counts):
    """One line an area and one for all."""
    total = sum((counts[a] for a in counts), collections.Counter())
    lines = [f"{'area':<20}" + "".join(f"{c:>12}" for c in COLUMNS)]
    for area, row in [*sorted(counts.items()), ("all", total)]:
        lines.append(f"{area:<20}" + "".join(f"{row[c]:>12}" for c in COLUMNS))
    return "\n".join(lines)


def by_parent(names):
    """Lines that list names, those of one module or class together."""
    groups = collections.defaultdict(list)
    for name in names:
        parent, _, last = name.rpartition(".")
        groups[parent].append(last)
    for parent, members in sorted(groups.items()):
        text = f"`{parent}`: {', '.join(sorted(members))}."
        yield textwrap.fill(text, 118, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)


def page(names, counts, missing):
    """The generated part of docs/migration.md."""
    why, kinds = dict(missing), {name: kind for name, kind, _, _ in names}
    lines = ["## By area", "", summary(names, counts), "", "| area | names | there | called as in Paddle | compared with Paddle, and agree |",
             "|---|---|---|---|---|"]
    for area in sorted(counts):
        lines.append(f"| {area} | " + " | ".join(str(counts[area][c]) for c in COLUMNS) + " |")
    for area in sorted(counts):
        of_area = [name for name, _, _, a in names if a == area and name in why]
        absent = [n for n in of_area if why[n] == ABSENT]
        unshown = [n for n in of_area if why[n] == UNSHOWN and kinds[n] != "module"]
        differ = [n for n in of_area if why[n] not in (ABSENT, UNSHOWN)]
        if not (absent or unshown or differ):
            continue
        lines += ["", f"### {area}", ""]
        if absent:
            lines += [f"- Missing ({len(absent)}):", *by_parent(absent)]
        if differ:
            lines += [f"- There, with other parameters ({len(differ)}):"]
            lines += [f"  - `{n}`: {why[n].replace('signature: ', '')}" for n in sorted(differ)]
        if unshown:
            lines += [f"- There, not compared with real Paddle by a test ({len(unshown)}):", *by_parent(unshown)]
    return "\n".join(lines) + "\n"


def check_page():
    """Problems of the committed page that need no build: its table must be the committed floor's."""
    text, said = PAGE.read_text(), {}
    if MARK not in text:
        return [f"{PAGE.name} has lost the line that parts what is generated: {MARK.strip()}"]
    for line in text.partition(MARK)[2].splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) == 5 and cells[1].isdigit():
            said.update({(cells[0], c): int(n) for c, n in zip(COLUMNS[1:], cells[2:]) if int(n)})
    floor = {(a, c): int(n) for a, c, n in read_floor(FLOOR)}
    return [f"{PAGE.name}: {a}: {c} is {said.get((a, c), 0)}, {FLOOR.name} has {floor.get((a, c), 0)}: `make coverage`"
            for a, c in sorted(said.keys() | floor.keys()) if said.get((a, c)) != floor.get((a, c))]


def overclaims(names, missing):
    """Names that the committed page does not list though they are not covered now: what it says is not true."""
    text = PAGE.read_text().partition(MARK)[2]
    listed = set()
    for parent, members in re.findall(r"^  - `([\w.]+)`: (.*(?:\n    .*)*)", text, re.M):
        listed.add(parent)
        listed |= {f"{parent}.{m}" for m in re.findall(r"\w+", members)}
    modules = {name for name, kind, _, _ in names if kind == "module"}
    return [f"{PAGE.name} does not list {name}: {why}" for name, why in missing
            if name not in listed and not (name in modules and why == UNSHOWN)]


def read_floor(path):
    """(area, column, count) of every line of a floor."""
    return [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]


def drops(counts, floor):
    """Counts below the floor, whose lines are `area column count`."""
    below = []
    for area, column, least in read_floor(floor):
        if counts[area][column] < int(least):
            below.append(f"{area}: {column} is {counts[area][column]}, the floor is {least}")
    return below


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.environ.get("PROA_BUILD", ROOT / "build"), type=pathlib.Path)
    parser.add_argument("--names", default=NAMES, type=pathlib.Path)
    parser.add_argument("--missing", action="store_true", help="list the names that are not covered, and why")
    parser.add_argument("--floor", type=pathlib.Path, nargs="?", const=FLOOR,
                        help="exit 1 if a count lies below this file's, or docs/migration.md claims too much")
    parser.add_argument("--raise-floor", type=pathlib.Path, nargs="?", const=FLOOR,
                        help="write the counts as the new floor, and docs/migration.md")
    parser.add_argument("--check", action="store_true", help="only compare docs/migration.md with the floor")
    options = parser.parse_args()
    if options.check:
        problems = check_page()
        print(*problems or ["coverage: ok"], sep="\n")
        return 1 if problems else 0
    sys.path.insert(0, str(options.build / "python"))
    shown = {n for f in (options.build / "parity").glob("*.txt") for n in f.read_text().split()}
    names = read_names(options.names)
    counts, missing = survey(names, shown)
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
        PAGE.write_text(PAGE.read_text().partition(MARK)[0] + MARK + "\n" + page(names, counts, missing))
    if options.floor:
        below = drops(counts, options.floor) + overclaims(names, missing)
        print(*below[:20], sep="\n", file=sys.stderr)
        if len(below) > 20:
            print(f"… and {len(below) - 20} more", file=sys.stderr)
        return 1 if below else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
