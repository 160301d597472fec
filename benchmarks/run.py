#!/usr/bin/env python3
"""What `make bench` runs: each unit of the families in Proa, Paddle and PyTorch, in processes that alternate, round after
round, with the machine's limits measured in each round; rounds in which somebody else was at work are run again (quiet.py);
then tables, JSON, a page of Markdown and a chart, in build/bench/.

    benchmarks/run.py [FAMILY ...] [--rounds N] [--again N] [--quick] [--only TEXT] [--unit TEXT] [--ways proa,torch]
                      [--keep-memory] [--compile] [--docs]

Families: overhead, kernels, training, sizes (training at the sizes that the release draws), inference, io (all, without being
asked), ops (some 570 rows against PyTorch, on shapes that nobody has tuned them for; --rounds 1 takes two minutes), compiled, busy
(beside other work, against PyTorch; --rounds 1 takes three minutes), dist (collectives, and steps of parallel trainings), and c (the
programs of benchmarks/*.c). --only picks rows, --unit picks units, by a part of their name.
--keep-memory also runs the peers with a glibc that is told to keep freed memory. --docs: the tables go into docs/benchmarks.md and
the chart beside it. --quick:
one round, small tensors: shows that everything works, and measures nothing."""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import busy
import quiet
import report

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
DEFAULT = ["overhead", "kernels", "training", "sizes", "inference", "io"]
ASKED = ["ops", "compiled", "busy", "c", "dist"]
HOMES = {"proa": ".venv", "paddle": ".venv-oracle", "torch": ".venv-torch", "onnxruntime": ".venv-torch"}
KEEP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
TIMEOUT, COMPILES = 300, 1200  # seconds a process may take; of the family whose first steps do


def python_of(way):
    home = HOMES[way.split("+")[0]]
    return sys.executable if home == ".venv" else str(ROOT / home / "bin/python")


def installed(way):
    if way.split("+")[0] == "proa":
        return True
    python = python_of(way)
    module = way.split("+")[0]
    found = os.path.exists(python) and subprocess.run(
        [python, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)"]).returncode == 0
    if not found:
        print(f"{way} is not installed: goes without it (tools/bootstrap --bench)", flush=True)
    return found


def environment(way, threads, build=BUILD):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), FLAGS_paddle_num_threads=str(threads), GLOG_minloglevel="3",
               PYTHONPATH=os.pathsep.join([str(build / "python"), str(build / "benchmarks")]), PYTHONWARNINGS="ignore",
               PROA_BENCHMARKS=str(build / "benchmarks"))
    return {**env, **KEEP} if way.endswith("+keep") else env


def ask(command, env, unit, limit=TIMEOUT):
    """The output of a worker's process, or its error."""
    try:
        done = subprocess.run(command, env=env, text=True, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {limit} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1][:200]}
    return json.loads(done.stdout.strip().splitlines()[-1]) if unit != "prepare" else {}


class Runner:
    def __init__(self, a):
        self.a, self.out = a, pathlib.Path(a.out).resolve()
        self.rounds = 1 if a.quick else a.rounds
        self.ways = [w for w in a.ways.split(",") if installed(w)]
        self.results = {}  # (family, unit, way) -> [what a process printed]
        self.limits = []
        self.quiet = quiet.Quiet([str(BUILD / "benchmarks/limits"), "probe"], environment("", a.threads))

    def command(self, way, family, unit, *more):
        folder = self.out / "work" / f"{way.split('+')[0].replace('onnxruntime', 'torch')}{'-quick' if self.a.quick else ''}"
        return [python_of(way), str(HERE / "worker.py"), way.replace("+keep", ""), family, unit, "--folder", str(folder),
                "--threads", str(self.a.threads), *(["--tiny"] if self.a.quick else []), *more]

    def worker(self, way, family, unit, *more):
        return ask(self.command(way, family, unit, *more), environment(way, self.a.threads), unit,
                   COMPILES if family == "compiled" else TIMEOUT)

    def ways_of(self, family, unit):
        ways = list(self.ways)
        if family == "inference":
            ways.insert(ways.index("proa") + 1, "proa+c")
            ways += [w for w in ("onnxruntime",) if "torch" in ways and installed(w)]
            ways += ["torch+compile"] if "torch" in ways and self.a.compile else []
        if self.a.keep_memory and family in ("kernels", "training", "sizes"):
            ways += [w + "+keep" for w in self.ways if w != "proa"]
        return [w for w in ways if w not in unit["skip"]]

    def measure_limits(self):
        command = [str(BUILD / "benchmarks/limits"), *(["quick"] if self.a.quick else [])]
        done = subprocess.run(command, env=environment("", self.a.threads), text=True, capture_output=True, check=True)
        self.limits.append(json.loads(done.stdout))

    def family(self, name):
        units = self.worker("proa", name, "list")
        if "error" in units:
            sys.exit(f"{name}: {units['error']}")
        units = [u for u in units if self.a.unit in u["name"]]
        if name in ("inference", "busy"):  # PyTorch runs beside other work as it is
            for way in self.ways if name == "inference" else ["proa"]:
                problem = self.worker(way, "inference", "prepare").get("error")
                if problem:
                    print(f"{name}: {way} cannot export: {problem}")
        tries = {u["name"]: [] for u in units}  # of each unit, its rounds: what was found, how quiet it was
        for turn in range(self.rounds if self.a.quick else self.rounds + self.a.again):
            wanted = [u for u in units if turn < self.rounds or not self.quiet.enough(tries[u["name"]], self.rounds)]
            if wanted and not (self.a.quick and self.limits):
                self.measure_limits()
            for unit in wanted:
                tries[unit["name"]].append(self.round_of(name, unit, turn))
                if sys.stderr.isatty():
                    print(f"\r{name}: round {turn + 1}, {unit['name']:40}\r", end="", flush=True, file=sys.stderr)
        for unit in units:
            for found, _ in self.quiet.quietest(tries[unit["name"]], self.rounds):
                for way, what in found.items():
                    self.results.setdefault((name, unit["name"], way), []).append(what)
        return units

    def round_of(self, family, unit, turn):
        """(way -> what its process found, the machine's probes before, between and after)."""
        ways = self.ways_of(family, unit)
        ways = ways[turn % len(ways):] + ways[:turn % len(ways)]
        if family == "busy":
            return self.machine.round_of(ways, unit["name"], lambda: [] if self.a.quick else [self.quiet.probe()])
        found, probes = {}, [] if self.a.quick else [self.quiet.probe()]
        for way in ways:
            found[way] = self.worker(way, family, unit["name"], "--only", self.a.only)
            if not self.a.quick:
                probes.append(self.quiet.probe())
        return found, probes

    def imports(self):
        """What `import` takes in a fresh interpreter; the interpreter's own start included."""
        ways = {"interpreter": (sys.executable, "pass")}
        ways.update({w: (python_of(w), f"import {w}") for w in self.ways})
        for turn in range(self.rounds + 1):  # the first fills the page cache
            for way, (python, code) in ways.items():
                env = environment(way, self.a.threads)
                start = time.perf_counter()
                subprocess.run([python, "-c", code], env=env, check=True, capture_output=True)
                took = time.perf_counter() - start
                if turn:
                    name = "interpreter" if way == "interpreter" else "import"
                    where = self.ways if way == "interpreter" else [way]
                    for w in where:
                        self.results.setdefault(("overhead", "process", w), []).append({"rows": {
                            "start of the interpreter" if name == "interpreter" else "import, from nothing": {"seconds": took}}})
        return [{"name": "process", "skip": [], "rows": [
            {"name": n, "flops": 0, "bytes": 0, "limit": limit}
            for n, limit in (("start of the interpreter", "itself"), ("import, from nothing", "start of the interpreter"))]}]

    def c_programs(self):
        """The comparisons that are whole programs; they print for themselves."""
        for name in ("dispatch", "roofline"):
            print(f"== {name}", flush=True)
            subprocess.run([str(BUILD / "benchmarks" / name)], env=environment("", self.a.threads), check=True)

    def several_processes(self):
        """Collectives, and steps of parallel trainings; they print for themselves."""
        peer = ["--torch", python_of("torch")] if "torch" in self.ways else []
        for script, quick in (("dist.py", ["--largest", "65536"]), ("parallel.py", ["--quick"])):
            subprocess.run([sys.executable, str(HERE / script), *peer, *(quick if self.a.quick else [])],
                           env=environment("proa", self.a.threads), check=True)

    def beside_other_work(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # loads and cgroups are taken down
        self.machine = busy.Machine(lambda way, unit: self.command(way, "busy", unit, "--serve"),
                                    lambda way: environment(way, self.a.threads), self.a.threads,
                                    0.01 if self.a.quick else busy.SECONDS)
        try:
            section = busy.Tables(self.family("busy"), self.results, self.machine.titles())
        finally:
            self.machine.quota.close()
        print(section.markdown(), flush=True)
        return section

    def run(self):
        self.out.mkdir(parents=True, exist_ok=True)
        sections, began = [], time.time()
        for family in self.a.families or DEFAULT:
            if family == "c":
                self.c_programs()
                continue
            if family == "dist":
                self.several_processes()
                continue
            if family == "busy":
                sections.append(self.beside_other_work())
                continue
            units = self.family(family)
            if family == "overhead" and not self.a.unit and not self.a.only:
                units += self.imports()
            if not units:
                print(f"{family}: no unit has {self.a.unit!r} in its name", file=sys.stderr)
                continue
            section = report.Section(family, units, self.results, self.limits)
            print(section.markdown(), flush=True)
            sections.append(section)
        if least := report.least_table(sections):
            print(least, flush=True)
        if sections:
            report.write(self.out, sections, self.limits, self.rounds, self.quiet.text(), time.time() - began)
            drawn = report.chart(self.out / "chart.png", sections)
            print(f"written: {self.out}/results.json, results.md" + (", chart.png" if drawn else ""))
            if self.a.docs:
                alone = self.a.families == ["busy"]
                report.into_page(ROOT / "docs/benchmarks.md", (self.out / "results.md").read_text(), "busy" if alone else "")
                if not alone:
                    report.chart(ROOT / "docs/benchmarks.png", sections)


def arguments(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", help=", ".join(DEFAULT + ASKED))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--again", type=int, default=3, help="further rounds of a unit, at most, in place of disturbed ones")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--unit", default="")
    parser.add_argument("--ways", default="proa,paddle,torch")
    parser.add_argument("--out", default=str(BUILD / "bench"))
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--keep-memory", action="store_true")
    parser.add_argument("--compile", action="store_true", help="inference: torch.compile, too")
    a = parser.parse_args(words)
    unknown = set(a.families) - set(DEFAULT + ASKED)
    if unknown or a.rounds < 1 or "proa" not in a.ways.split(","):
        parser.error(f"unknown family {', '.join(unknown)}" if unknown else "--rounds is at least 1, and --ways has proa")
    return a


if __name__ == "__main__":
    Runner(arguments(sys.argv[1:])).run()
