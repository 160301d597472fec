#!/usr/bin/env python3
"""Did a change cost speed? Runs rows of the families on two builds of Proa, in processes that alternate, and prints the time now
over the time before.

    benchmarks/before.py BUILD [--families kernels,training,inference,dispatch] [--rounds N] [--unit TEXT] [--within 0.02]
                         [--rows 0.03 [--again N]] [--environment NAME=VALUE ...]

BUILD: the build folder of the version before (PROA_BUILD, or build/, is the one now). --environment: for the processes of the
build before. Workloads are this checkout's in both. Ends with status 1 where the geometric mean of a family is beyond --within.
--rows: also hold each row to this bound. A row's figure is then the median over the rounds of now ÷ before, whose processes run one
after the other and so mostly meet the same other work; units with a row beyond the bound run again, up to --again times, and all
rounds count."""
import argparse
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import run
import worker

FAMILIES = "kernels,training,inference,dispatch"


class Build:
    def __init__(self, folder, threads, work, more=()):
        self.folder = pathlib.Path(folder).resolve()
        self.work, self.threads = work, str(threads)
        self.env = {**run.environment("proa", threads, self.folder), **dict(pair.split("=", 1) for pair in more)}

    def measure(self, family, unit):
        """Runs a unit once: ({row: median seconds of a call}, error texts)."""
        if family == "dispatch":
            done = subprocess.run([str(self.folder / "benchmarks/dispatch")], env=self.env, text=True, capture_output=True)
            return {name.strip(): float(ns) * 1e-9 for name, ns in re.findall(r"^(\S.*?) {2,}([\d.]+) ns", done.stdout, re.M)}, []
        rows, problems = {}, []
        for way in ("proa", "proa+c") if family == "inference" and not unit.startswith("decoding") else ("proa",):
            found = run.ask([sys.executable, str(run.HERE / "worker.py"), way, family, unit, "--folder", self.work, "--threads",
                             self.threads], self.env, unit)
            for row, what in found.get("rows", {}).items():
                if "seconds" in what:
                    rows[f"{row}{' from C' if way == 'proa+c' else ''}"] = what["seconds"]
            problems += filter(None, [found.get("error"), *(what.get("error") for what in found.get("rows", {}).values())])
        return rows, [f"{self.folder}, {family}, {unit}: {problem}" for problem in problems]


def compare(builds, family, units, rounds, times):
    """Adds to times = {(unit, row): ([seconds of the build before], [of the build now])}. Rows that the build before cannot run are
    named and left out; one that the build now cannot run ends the program."""
    missing = set()
    for turn in range(rounds):
        for unit in units:
            order = [0, 1] if turn % 2 == 0 else [1, 0]
            for which in order:
                rows, problems = builds[which].measure(family, unit)
                if problems and which == 1:
                    sys.exit("\n".join(problems))
                missing.update(problems)
                for row, seconds in rows.items():
                    times.setdefault((unit, row), ([], []))[which].append(seconds)
    for problem in sorted(missing):
        print("left out:", problem)


def medians(times):
    """{(unit, row): (seconds of the build before, of the build now)}."""
    return {key: tuple(map(statistics.median, both)) for key, both in times.items() if all(both)}


def rows_beyond(builds, family, units, rounds, times, bound, again):
    """Runs units again while a row is beyond the bound, `again` times at most. Returns the rows that stay beyond: {(unit, row): the
    median of its rounds' ratios}."""
    for turn in range(again + 1):
        ratios = {key: statistics.median(now / before for before, now in zip(*both, strict=True))
                  for key, both in times.items() if all(both)}
        beyond = {key: ratio for key, ratio in ratios.items() if ratio > 1 + bound}
        if turn < again and beyond:
            compare(builds, family, [u for u in units if any(u == unit for unit, _ in beyond)], rounds, times)
    print(f"{family}: {len(ratios) - len(beyond)} of {len(ratios)} rows at most {1 + bound:g} by the median of a round's ratios")
    for (unit, row), ratio in sorted(beyond.items(), key=lambda item: -item[1]):
        print(f"  {unit}: {row}: {ratio:.3f} ({len(times[unit, row][0])} rounds)")
    return beyond


def show(family, found, within):
    """Prints a family's rows beyond the bound, and its mean. Returns whether that is within it."""
    ratios = {key: now / before for key, (before, now) in found.items()}
    mean = math.exp(statistics.fmean(math.log(r) for r in ratios.values()))
    print(f"{family}: {len(ratios)} rows, geometric mean of now ÷ before {mean:.3f}, median {statistics.median(ratios.values()):.3f}; "
          f"{sum(r <= 1 + within for r in ratios.values())} rows at most {1 + within:g}")
    for (unit, row), r in sorted(ratios.items(), key=lambda item: -item[1]):
        before, now = found[unit, row]
        if r > 1 + within:
            print(f"  {unit}: {row}: {run.report.seconds_text(before)} → {run.report.seconds_text(now)}, {r:.3f}")
    return mean <= 1 + within


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--families", default=FAMILIES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--unit", default="")
    parser.add_argument("--within", type=float, default=0.02)
    parser.add_argument("--rows", type=float)
    parser.add_argument("--again", type=int, default=3)
    parser.add_argument("--environment", nargs="*", default=[])
    a = parser.parse_args()
    fine = True
    with tempfile.TemporaryDirectory() as work:
        builds = [Build(a.build, a.threads, work, a.environment), Build(run.BUILD, a.threads, work)]
        if "inference" in a.families:
            found = run.ask([sys.executable, str(run.HERE / "worker.py"), "proa", "inference", "prepare", "--folder", work],
                            builds[1].env, "prepare")
            if found.get("error"):
                sys.exit(f"{builds[1].folder} cannot export the models: {found['error']}")
        for family in a.families.split(","):
            named = ["add"] if family == "dispatch" else [u.name for u in worker.families()[family]()]
            units = [name for name in named if family == "dispatch" or a.unit in name]
            if not units:
                sys.exit(f"no unit of {family} has {a.unit!r} in its name; there are {', '.join(named)}")
            times = {}
            compare(builds, family, units, a.rounds, times)
            fine &= show(family, medians(times), a.within)
            if a.rows is not None:
                fine &= not rows_beyond(builds, family, units, a.rounds, times, a.rows, a.again)
    return 0 if fine else 1


if __name__ == "__main__":
    os.chdir(run.ROOT)
    sys.exit(main())
