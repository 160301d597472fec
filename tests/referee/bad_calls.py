#!/usr/bin/env python3
"""Calls every public callable of Paddle wrongly, on real Paddle and on Proa, and compares what is raised: the Python type
and Paddle's category ((InvalidArgument), (NotFound), …).

    tests/referee/bad_calls.py [--only PATTERN …] [--jobs 2] [--seed 0] [--again] [--out build/referee/bad_calls]

Writes OUT/results.tsv (name, mode, kind of mistake, parameter, the call, verdict, Paddle's outcome, Proa's, both texts, and what
Paddle's run of a program says) and prints agreement by area, the differences by cause and those that a rule of
bad_calls_reasons.py explains. Calls that both take are no bad calls and are counted apart, as are those with float16 or bfloat16
that Paddle refuses for want of a kernel in its build for CPUs ("no kernel"). In static mode a call that builds a program is taken if
the program then runs."""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

from bad_calls_reasons import LISTED, MISTAKE, explanation, lacks_kernel

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CHUNK = 250

# Public callables that are not called, and why.
LEFT_OUT = [
    ("paddle.Tensor.cuda", "needs a GPU"), ("paddle.*cuda*", "needs a GPU"), ("paddle.device.*", "needs a device"),
    ("paddle.set_device", "needs a device"), ("paddle.utils.run_check", "runs a training"),
    ("paddle.utils.require_version", "of Paddle's version"), ("paddle.static.cpu_places", "of the machine"),
    ("paddle.static.*_places", "of the machine"), ("paddle.static.ipu*", "needs an IPU"),
    ("paddle.static.Ipu*", "needs an IPU"), ("paddle.static.set_ipu*", "needs an IPU"),
    ("paddle.*.register_hook", "keeps a callback"), ("paddle.text.*", "downloads data"),
    ("paddle.DataParallel*", "needs processes"), ("paddle.*sync_batch*", "needs a GPU"),
    ("paddle.static.Print", "prints"), ("paddle.set_flags", "of Paddle's own flags"),
    ("paddle.get_flags", "of Paddle's own flags"), ("paddle.disable_signal_handler", "of the process"),
    ("paddle.*IPU*", "needs an IPU"), ("paddle.static.WeightNormParamAttr", "is a record"),
]


def environment(side):
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
               CUDA_VISIBLE_DEVICES="")
    build = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build"))
    env["PYTHONPATH"] = str(build / "python") if side == "proa" else ""
    return env


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_jobs(options, side, jobs):
    """{job id: {"base": event, "calls": {number: the call with its outcome}}}."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="bad-calls-") as scratch:
        given, report = pathlib.Path(scratch, "jobs.jsonl"), pathlib.Path(scratch, "report.jsonl")
        given.write_text("".join(json.dumps(j) + "\n" for j in jobs))
        command = [options.oracle if side == "paddle" else options.python, str(HERE / "bad_calls_worker.py"), side,
                   str(given), str(report)]
        process = subprocess.run(command, cwd=scratch, env=environment(side), preexec_fn=limit, stdin=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
        if process.returncode:
            sys.exit(f"referee: the worker of {side} ends with {process.returncode}:\n"
                     + process.stderr.decode(errors="replace")[-2000:])
        events = [json.loads(line) for line in report.read_text().splitlines()]
    for e in events:
        of = found.setdefault(e["job"], {"base": None, "calls": {}})
        if e["event"] == "base":
            of["base"] = e
        elif e["event"] == "call":
            of["calls"][e["call"]] = e
        elif e["event"] == "outcome":
            of["calls"][e["call"]].update(outcome=e["outcome"], text=e["text"])
        elif e["event"] == "run":
            of["calls"][e["call"]].update(run=e["run"], run_text=e["text"])
    return found


def chunks(jobs):
    return [jobs[i:i + CHUNK] for i in range(0, len(jobs), CHUNK)]


def on_paddle(options, jobs):
    """[{job, base, calls with Paddle's outcomes}] of the jobs that have calls."""
    def part(some):
        found = run_jobs(options, "paddle", some)
        return [{"job": j, "base": found[j["id"]]["base"],
                 "calls": [found[j["id"]]["calls"][i] for i in sorted(found[j["id"]]["calls"])]}
                for j in some if found.get(j["id"], {"calls": 0})["calls"]]
    return in_parts(options, part, jobs)


def on_proa(options, done):
    """Adds Proa's outcomes."""
    def part(some):
        jobs = [{**d["job"], "calls": [{k: c[k] for k in ("kind", "parameter", "args", "keywords")} for c in d["calls"]]}
                for d in some]
        found = run_jobs(options, "proa", jobs)
        for d in some:
            answers = found.get(d["job"]["id"], {"calls": {}})["calls"]
            for i, c in enumerate(d["calls"]):
                c["own"], c["own_text"] = in_all(answers.get(i, {}))
        return some
    return in_parts(options, part, done)


def in_parts(options, part, items):
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return [row for rows in pool.map(part, chunks(items)) for row in rows]


def make_jobs(options):
    """Functions, constructors and Tensor methods; then methods of what could be constructed (second round)."""
    with tempfile.TemporaryDirectory() as scratch:  # some of Paddle's modules write logs when they are imported
        said = subprocess.run([options.oracle, str(HERE / "bad_calls_worker.py"), "paddle", "names"], check=True, cwd=scratch,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment("paddle")).stdout
    jobs, methods = [], {}
    for name, kind, static_too, members in json.loads(said.splitlines()[-1]):
        if any(fnmatch.fnmatch(name, pattern) for pattern, _ in LEFT_OUT):
            continue
        owner = ["tensor", [2, 3], "float32"] if kind == "method" else None
        base = {"name": name, "owner": owner, "bound": False, "seed": options.seed, "static": False}
        if any(fnmatch.fnmatch(name, pattern) for pattern in options.only):
            only_static = name.startswith("paddle.static.")
            if not only_static:
                jobs.append(base)
            if only_static or (static_too and kind == "function"):
                jobs.append({**base, "static": True})
        if kind == "class" and not name.startswith("paddle.static."):
            methods[name] = members
    if options.sample:
        jobs = random.Random(options.seed).sample(jobs, min(options.sample, len(jobs)))
    return [{**j, "id": i} for i, j in enumerate(jobs)], methods


def method_jobs(options, done, methods, first):
    jobs = []
    for job, base in ((d["job"], d["base"]) for d in done):
        if not base or not base["works"]:
            continue
        for member in methods.get(job["name"], []):
            name = f"{job['name']}.{member}"
            if any(fnmatch.fnmatch(name, pattern) for pattern, _ in LEFT_OUT):
                continue
            jobs.append({"name": name, "owner": ["new", job["name"], base["specs"], {}], "bound": True,
                         "seed": options.seed, "static": False, "id": first + len(jobs)})
    return jobs


def planned(options):
    """Answers of real Paddle: read from OUT/plan.jsonl if --again says so, else asked for and written there."""
    plan = options.out / "plan.jsonl"
    if options.again:
        done = [json.loads(line) for line in plan.read_text().splitlines()]
        return [d for d in done if any(fnmatch.fnmatch(d["job"]["name"], pattern) for pattern in options.only)]
    jobs, methods = make_jobs(options)
    done = on_paddle(options, jobs)
    done += on_paddle(options, method_jobs(options, done, methods, len(jobs)))
    plan.write_text("".join(json.dumps(d) + "\n" for d in done))
    return done


# ---- the table -----------------------------------------------------------------------------------------------------

def area(job):
    parts = job["name"].split(".")
    return ".".join(parts[:-1]) + (", static mode" if job["static"] else "")


def in_all(call):
    """(outcome, text) of a call, and of the run of the program that it built."""
    if call.get("outcome") == "ok" and call.get("run", "") not in ("", "ok"):
        return call["run"], call.get("run_text", "")
    return call.get("outcome", "lost"), call.get("text", "")


def verdict(theirs, ours):
    """"same", "differ", "taken" by both, or what cannot be compared: Paddle ended, or the referee made no arguments."""
    if theirs.startswith(("crash", "late")):
        return "Paddle ended"
    if theirs.startswith("unmade"):
        return "unmade"
    if theirs == ours:
        return "taken" if ours == "ok" else "same"
    return "differ"


def shown(call):
    return json.dumps(call["args"]) + (" " + json.dumps(call["keywords"]) if call["keywords"] else "")


def listed(done):
    """(name, call) of calls in programs of whose dtype Paddle's Python says that the function does not take it."""
    return {(d["job"]["name"], shown(c)) for d in done if d["job"]["static"] for c in d["calls"] if LISTED.search(in_all(c)[1])}


def report(options, done):
    out_of_lists = listed(done)
    areas, totals, causes = collections.defaultdict(collections.Counter), collections.Counter(), collections.Counter()
    reasons = collections.Counter()
    with open(options.out / "results.tsv", "w") as table:
        for job, calls in ((d["job"], d["calls"]) for d in done):
            for c in calls:
                theirs, text = in_all(c)
                what = verdict(theirs, c["own"])
                row = [job["name"], "static" if job["static"] else "dynamic", c["kind"], c["parameter"], shown(c), what,
                       theirs, c["own"], *(" ".join(t.split()) for t in (text, c["own_text"], c.get("run", "")))]
                if what == "differ" and lacks_kernel(row) and (job["name"], shown(c)) not in out_of_lists:
                    what = row[5] = "no kernel"
                totals[what] += 1
                areas[area(job)][what] += 1
                if what == "differ":
                    kind, why = explanation(row)
                    reasons[why] += 1
                    totals["not by a mistake"] += kind != MISTAKE
                    if why is None:
                        causes[f"{c['kind']}: Paddle {theirs}, Proa {c['own']}"] += 1
                print(*row, sep="\t", file=table)
    for counted in (reasons, causes):
        for text, n in counted.most_common(40):
            print(f"{n:6} {text or 'differ without a reason:'}")
    for name in sorted(areas):
        n = areas[name]
        print(f"{name:44} {n['same']:6} of {n['same'] + n['differ']:6} agree")
    apart = totals.pop("not by a mistake", 0)
    bad = totals["same"] + totals["differ"]
    print(f"{sum(totals.values())} calls of {len(done)} callables and modes: {dict(totals)}; of {bad} that one of them "
          f"refuses, {totals['same']} agree in type and category ({100 * totals['same'] / max(bad, 1):.2f} %; without {apart} that a "
          f"limit or a stray read of Paddle's decides: {100 * totals['same'] / max(bad - apart, 1):.2f} %)")
    return 100 * totals["same"] / max(bad, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=["*"])
    parser.add_argument("--sample", type=int, help="so many callables, drawn by the seed")
    parser.add_argument("--again", action="store_true", help="do not ask real Paddle again: OUT/plan.jsonl")
    parser.add_argument("--least", type=float, default=0, help="exit 1 below this agreement in per cent")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/referee/bad_calls")
    parser.add_argument("--oracle", default=str(ROOT / ".venv-oracle/bin/python"))
    parser.add_argument("--python", default=str(ROOT / ".venv-oracle/bin/python"), help="what runs Proa")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return 1 if report(options, on_proa(options, planned(options))) < options.least else 0


if __name__ == "__main__":
    sys.exit(main())
