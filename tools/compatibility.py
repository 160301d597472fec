#!/usr/bin/env python3
"""Writes docs/compatibility.md from the result files of the referees (tests/referee: Paddle's own unit tests, public
applications, bad calls, examples in docstrings) and the counts of the parity suite. Standard library.

    tools/compatibility.py [--results build/referee] [--print]

Reads RESULTS/unittests/results.tsv, RESULTS/dygraph_to_static/results.tsv, RESULTS/applications/table.tsv,
RESULTS/bad_calls/results.tsv and RESULTS/docstrings/results.tsv. A referee without results keeps the section that the page has."""
import argparse
import collections
import pathlib
import re
import sys

import api_coverage

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests/referee"))
from bad_calls_reasons import LIMIT, MISTAKE, UNDEFINED, explanation, refuses
PAGE = ROOT / "docs/compatibility.md"
MIN, ALL = 3, 60  # of more than ALL causes, those that stop fewer than MIN tests are counted together
HEAD = """# Compatibility: what referees say

How far scripts for Paddle run unchanged on Proa, as programs say that nobody here wrote. Real Paddle 2.6.2 on the CPU is the
measure. `tools/compatibility.py` wrote this page from the files that the referees leave; [migration.md](migration.md) says
what differs by intent, [limits.md](limits.md) what is missing, `CONTRIBUTING.md` how to run a referee.
"""


def rows_of(path):
    return [line.split("\t") for line in path.read_text(errors="replace").splitlines() if line]


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "none"


def general(cause):
    """A cause without its names, numbers and files, so that its kin are counted together."""
    cause = re.sub(r"'/[^']*'", "'…'", re.sub(r" \(/[^)]*\)?", "", cause))
    named = "attribute" in cause or "import" in cause
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'", lambda m: m[0] if named else "'…'", cause)).strip()[:140]


def cell(text):
    """Text for a table: no bar ends its cell, no mark changes its look."""
    return "`" + text.replace("|", "¦").replace("`", "'") + "`" if text else "no text"


def causes_table(causes, what):
    """Lines of a table of causes by how often they occur; where they are many, the rare ones by kind, a row each."""
    least = MIN if len(causes) > ALL else 1
    lines = [f"| {what} | cause |", "|---|---|"]
    lines += [f"| {n} | {cell(cause)} |" for cause, n in causes.most_common() if n >= least]
    rare, kinds = collections.Counter(), collections.Counter()
    for cause, n in causes.items():
        if n < least:
            kind = cause.partition(":")[0]
            rare[kind] += n
            kinds[kind] += 1
    lines += [f"| {n} | {kinds[kind]} causes of the kind {cell(kind)} that occur once or twice |"
              for kind, n in rare.most_common()]
    return lines


# ---- sections ------------------------------------------------------------------------------------------------------

def exceptions():
    """{reason: [patterns]} of the files that the referee leaves out."""
    reasons = collections.defaultdict(list)
    for line in (ROOT / "tests/referee/exceptions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, reason = line.split(maxsplit=1)
            reasons[reason].append(pattern)
    return reasons


def unit_tests(path, title):
    rows = rows_of(path)
    outcomes = collections.Counter(row[2] for row in rows)
    ran = len(rows) - outcomes["skipped"]
    files = collections.defaultdict(set)
    for row in rows:
        files[row[0]].add(row[2])
    whole = sum(kinds <= {"passed", "skipped"} for kinds in files.values())
    causes = collections.Counter(general(row[4]) if len(row) > 4 else "" for row in rows
                                 if row[2] not in ("passed", "skipped"))
    lines = [f"## {title}", "", "| files | in full | methods that ran | pass | skip themselves |", "|---|---|---|---|---|",
             f"| {len(files)} | {whole} | {ran} | {outcomes['passed']} ({share(outcomes['passed'], ran)}) "
             f"| {outcomes['skipped']} |", "",
             "By outcome: " + ", ".join(f"{n} {kind}" for kind, n in outcomes.most_common()) + "."]
    if causes:
        lines += ["", *causes_table(causes, "methods")]
    return lines


def all_unit_tests(path):
    lines = unit_tests(path, "Paddle's own unit tests")
    lines += ["", "With `FLAGS_set_to_1d=1`, Paddle's own flag for scripts of before 2.5, in which no tensor was 0-D. A file counts by its "
              "last run; checks that a class makes after its methods count as one."]
    lines += ["", "Left out, by the pattern of a file's name (`tests/referee/exceptions.txt`):", ""]
    lines += [f"- {reason}: {', '.join(f'`{p}`' for p in patterns)}" for reason, patterns in exceptions().items()]
    return lines


def dygraph_to_static(path):
    return unit_tests(path, "Paddle's own tests of dygraph_to_static")


def applications(path):
    rows = [row for row in rows_of(path)[1:] if row[3] != "not in Paddle"]
    by_repository, stages = collections.defaultdict(list), collections.defaultdict(collections.Counter)
    for row in rows:
        by_repository[row[0]].append(row)
        stages[row[2]][row[3]] += 1
    agree = sum(row[3] == "agrees" for row in rows)
    models = {tuple(row[:2]) for row in rows}
    lines = ["## Applications", "",
             f"{len(models)} models of {len(by_repository)} public repositories, unmodified, with the same weights on both sides; "
             f"{agree} of {len(rows)} stages that real Paddle passes agree ({share(agree, len(rows))}).", "",
             "| repository | models | agree in every stage | stages | agree |", "|---|---|---|---|---|"]
    for name, some in sorted(by_repository.items()):
        all_models = {row[1] for row in some}
        whole = all_models - {row[1] for row in some if row[3] != "agrees"}
        good = sum(row[3] == "agrees" for row in some)
        lines.append(f"| {name} | {len(all_models)} | {len(whole)} | {len(some)} | {good} ({share(good, len(some))}) |")
    lines += ["", "| stage | agree | of |", "|---|---|---|"]
    lines += [f"| {stage} | {n['agrees']} | {sum(n.values())} |" for stage, n in stages.items()]
    causes = collections.Counter(f"{row[2]}: {row[3]} {general(row[4])}" for row in rows
                                 if row[3] not in ("agrees", "skipped"))
    if causes:
        lines += ["", *causes_table(causes, "models")]
    return lines + slower(rows)


def slower(rows):
    """Models that take over a tenth longer than on Paddle."""
    late = [(row, float(row[6]) / float(row[5])) for row in rows if row[3] == "agrees" and len(row) > 6 and row[5] and row[6]
            and row[2] in ("forward", "gradients", "own") and float(row[5]) > 0]
    late = sorted(((ratio, row) for row, ratio in late if ratio > 1.1), reverse=True)
    if not late:
        return []
    return ["", f"Slower than on Paddle by more than a tenth ({len(late)}), where what a first call makes, as oneDNN's primitives, is part of a stage:",
            "", "| model | stage | of Paddle's seconds |",
            "|---|---|---|"] + [f"| {row[0]}/{row[1]} | {row[2]} | {ratio:.2f} |" for ratio, row in late]


def unexplained(row):
    """The kind of a difference that no rule of bad_calls_reasons.py explains."""
    theirs, ours = row[6], row[7]
    if ours.startswith("crash"):
        return "Proa ends the process"
    if ours.startswith("unmade"):
        return "Proa does not have the callable, or could not make its object"
    if ours == "late":
        return "Proa takes longer than the call's four seconds"
    if ours == "ok":
        return "Proa takes it: a rank, kind or value that Paddle refuses, or an argument that it does not read"
    if theirs == "ok":
        return "Proa refuses it: Paddle ignores, converts or misreads the argument"
    if theirs.partition("|")[0] == ours.partition("|")[0]:
        return "the same type; Paddle finds another mistake first, or says it in Python, without a category"
    if "|" in theirs and not theirs.partition("|")[2]:
        return "both refuse; Paddle's own Python finds it, with another type"
    return "both refuse, with another type and category"


def other_seeds(folder):
    """Sentences on runs with other values (bad_calls.py --seed N --out RESULTS/bad_calls/seedN): nobody mended their differences one by
    one, so that they say how calls agree that nobody has looked at."""
    for path in sorted(folder.glob("seed*/results.tsv")):
        kinds = collections.Counter(row[5] for row in rows_of(path))
        refused = kinds["same"] + kinds["differ"]
        yield (f" Of {refused} such calls with other values ({path.parent.name}), whose differences were not mended one by one, "
               f"**{share(kinds['same'], refused)}** agree.")


def bad_calls(path):
    rows = rows_of(path)
    kinds, areas = collections.Counter(row[5] for row in rows), collections.defaultdict(collections.Counter)
    mistakes = collections.defaultdict(collections.Counter)
    for row in rows:
        where = row[0].rpartition(".")[0] + (", static mode" if row[1] == "static" else "")
        areas[where][row[5]] += 1
        mistakes[row[2]][row[5]] += 1
    refused = kinds["same"] + kinds["differ"]
    types = sum(row[5] == "same" or row[6].partition("|")[0] == row[7].partition("|")[0] for row in rows
                if row[5] in ("same", "differ"))
    reasons = collections.Counter(explanation(row) for row in rows if row[5] == "differ")
    left = reasons.pop((MISTAKE, None), 0)
    by_kind = collections.Counter()
    for (kind, _), n in reasons.items():
        by_kind[kind] += n
    both = kinds["same"] + sum(row[5] == "differ" and refuses(row[6]) and refuses(row[7]) for row in rows)
    lines = ["## Bad calls", "",
             f"{len(rows)} calls with one mistake each, of {len({row[0] for row in rows})} public callables. {refused} of them "
             f"are refused by Paddle or Proa: **{share(kinds['same'], refused)}** agree in Python type and in category, "
             f"{share(types, refused)} in type. Both refuse {both} of them; of these **{share(kinds['same'], both)}** agree. "
             f"{sum(reasons.values())} differ for a reason that a rule states (below), {left} "
             f"without one: {share(refused - left, refused)} agree or have a reason. In {by_kind[LIMIT]} a limit of Paddle's build decides, in "
             f"{by_kind[UNDEFINED]} memory that it reads outside the argument or as of another dtype: without these, "
             f"{share(kinds['same'], refused - by_kind[LIMIT] - by_kind[UNDEFINED])} agree. Both take {kinds['taken']}. {kinds['no kernel']} more "
             "are no bad calls: they pass float16 or bfloat16, which Proa computes with, and Paddle's own text says that its build for CPUs has no "
             "kernel registered for them; where its Python reads a list of dtypes for the same call in a program, the list has them. Paddle's "
             f"build for GPUs was not run. Real Paddle's process ends or hangs in {kinds['Paddle ended']}; {kinds['unmade']} could not be made on Paddle.{''.join(other_seeds(path.parent))}", "",
             "| mistake | refused | agree |", "|---|---|---|"]
    for name, n in sorted(mistakes.items()):
        total = n["same"] + n["differ"]
        lines.append(f"| {name} | {total} | {share(n['same'], total)} |")
    lines += ["", "| area | refused | agree |", "|---|---|---|"]
    for name, n in sorted(areas.items()):
        total = n["same"] + n["differ"]
        if total >= 40:
            lines.append(f"| {name} | {total} | {share(n['same'], total)} |")
    lines += ["", "What differs for a reason, by the rules of `tests/referee/bad_calls_reasons.py`:", "", "| calls | decided by | reason |",
              "|---|---|---|"]
    decided = {MISTAKE: "the mistake", LIMIT: "a limit of Paddle's", UNDEFINED: "a stray read of Paddle's"}
    lines += [f"| {n} | {decided[kind]} | {text} |" for (kind, text), n in reasons.most_common()]
    rest = [row for row in rows if row[5] == "differ" and explanation(row)[1] is None]
    lines += ["", "What differs without one:", "", "| calls | kind |", "|---|---|"]
    lines += [f"| {n} | {kind} |" for kind, n in collections.Counter(map(unexplained, rest)).most_common()]
    causes = collections.Counter(f"{row[2]}: Paddle {row[6]}, Proa {row[7]}" for row in rest)
    return lines + ["", *causes_table(collections.Counter(dict(causes.most_common(40))), "calls")]


def docstrings(path):
    rows = rows_of(path)
    counts = collections.Counter(row[1] for row in rows)
    run = sum(counts[word] for word in ("same", "other numbers", "prints otherwise"))
    failed = [row for row in rows if row[1] in ("error", "crash", "late")]
    lines = ["## Examples in Paddle's docstrings", "",
             f"Of the {len(rows)} docstrings whose examples real Paddle's build for CPUs runs, Proa runs {run} ({share(run, len(rows))}), and "
             f"{counts['same']} print the same ({share(counts['same'], len(rows))}; numbers to four digits). In {counts['other numbers']} only numbers "
             f"differ: random ones, and the divergence of two geometric distributions, where Paddle's lacks a factor. "
             f"{counts['prints otherwise']} print another text: operators of programs and their attributes, messages, bare memory, "
             "`stop_gradient` of gradients, which is true here. Left out are distributed jobs, devices, data sets that are downloaded "
             "and `paddle.base`.", "", "| docstring | cause |", "|---|---|"]
    return lines + [f"| `{row[0]}` | {cell(re.sub(r' [(]/[^)]*[)]?', '', row[2].split(' | ')[0]))} |" for row in failed]


def parity():
    """Counts of the names of 2.0 and 2.1 (tests/parity, tools/api_coverage.py)."""
    counts = collections.defaultdict(collections.Counter)
    for area, column, n in api_coverage.read_floor(api_coverage.FLOOR):
        counts[area][column] = int(n)
    return ["## Names", "", api_coverage.summary(api_coverage.read_names(), counts) +
            " [migration.md](migration.md) has the table by area.", "", later_names()]


def later_names():
    """The sentence on the names of 2.6.2 (tests/parity/test_public_names.py)."""
    lines = (ROOT / "tests/parity/public_names_missing.txt").read_text().splitlines()
    missing = [line.partition(" | ")[2] for line in lines if not line.startswith("#")]
    total = int(re.search(r"there are (\d+)", "".join(lines))[1])
    hardware = sum(reason.startswith("hardware: ") for reason in missing)
    there = total - len(missing)
    return (f"Of the {total} public names of Paddle 2.6.2 {there} are there ({api_coverage.share(there, total)}); {hardware} of the "
            f"{len(missing)} others are of hardware that Paddle's build for CPUs does not reach either "
            "(`tests/parity/public_names_missing.txt` says why for each).")


SECTIONS = [("unittests/results.tsv", all_unit_tests), ("dygraph_to_static/results.tsv", dygraph_to_static),
            ("applications/table.tsv", applications), ("bad_calls/results.tsv", bad_calls),
            ("docstrings/results.tsv", docstrings)]


def kept(name):
    """The lines that the page has for a section."""
    text = PAGE.read_text() if PAGE.exists() else ""
    found = re.search(rf"<!-- {re.escape(name)} -->\n(.*?)\n*<!-- end -->", text, re.S)
    return found[1].split("\n") if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/referee")
    parser.add_argument("--print", action="store_true", help="show the page instead of writing it")
    options = parser.parse_args()
    lines = [HEAD, *parity(), ""]
    for name, section in SECTIONS:
        path = options.results / name
        body = section(path) if path.exists() else kept(name)
        if body is None:
            print(f"compatibility: no {path}: the section is left out", file=sys.stderr)
            continue
        lines += [f"<!-- {name} -->", *body, "<!-- end -->", ""]
    text = "\n".join(lines).rstrip() + "\n"
    if options.print:
        print(text, end="")
    else:
        PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
