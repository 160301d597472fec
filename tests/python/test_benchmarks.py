"""benchmarks/: every family's workloads run on Proa with small sizes, and the tables say what was measured."""
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "benchmarks"))
import busy
import inference
import networks
import quiet
import report
import run as runner

LIMITS = [{"threads": 2, "clock_ghz": 3, "fma_gflops": 100, "read_gbs": 20, "copy_gbs": 10, "triad_gbs": 10, "adam_gbs": 10,
           "first_touch_gbs": 2, "malloc_ns": 9, "fork_join_us": 1, "radix_ms": 5}]


def run(out, *words):
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks/run.py"), "--quick", "--ways", "proa", "--out", str(out), *words],
                          text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((out / "results.json").read_text())


def test_every_family_runs(tmp_path):
    names = ["overhead", "kernels", "ops", "training", "compiled", "inference", "io"]
    text, results = run(tmp_path, *names)
    assert [f["family"] for f in results["families"]] == names
    rows = {(f["family"], r["unit"], r["row"]): r for f in results["families"] for r in f["rows"]}
    assert [key for key, r in rows.items() if r["errors"]] == []
    assert len(rows) >= 100
    assert all(r["flops"] > 0 for (family, _, _), r in rows.items() if family in report.STEPS)
    assert all(r["seconds"]["proa"][0] > 0 for r in rows.values())
    from_c = [r["seconds"]["proa+c"][0] for r in rows.values() if "proa+c" in r["seconds"]]
    units = [u for u in inference.units(True) if "proa+c" not in u.skip]  # in float and INT8
    assert len(from_c) == len(units) > len(inference.networks(tiny=True)) and min(from_c) > 0
    assert results["limits"]["copy_gbs"] > 0 and results["limits"]["fma_gflops"] > 0
    assert "### kernels" in text and (tmp_path / "results.md").read_text().count("| softmax |") == 1


def test_a_release_draws_its_own_sizes(monkeypatch):
    drawn = {}
    for version in (networks.release(), "99.0.0"):
        monkeypatch.setattr(networks, "release", lambda: version)
        drawn[version] = networks.drawn(False)
        assert len(drawn[version]) == networks.DRAWN * len(networks.NETWORKS)
        assert not drawn[version].keys() & networks.usual(False).keys()
        assert drawn[version].keys() == networks.drawn(False).keys()
    one, other = (set(names) for names in drawn.values())
    assert len(one & other) <= len(one) // 4


def test_drawn_sizes_run(tmp_path):
    _, results = run(tmp_path, "sizes", "--unit", "LSTM")
    assert [len(r["seconds"]["proa"]) for r in results["families"][0]["rows"]] == [1] * networks.DRAWN


def test_the_least_of_a_networks_sizes_is_told():
    def family(name, *ratios):
        units = [{"name": f"net, {i}×{name}", "skip": [], "rows": [{"name": "step", "flops": 0, "bytes": 0, "limit": "copy"}]}
                 for i in range(len(ratios))]
        results = {(name, u["name"], way): [{"rows": {"step": {"seconds": s}}}]
                   for u, ratio in zip(units, ratios) for way, s in (("proa", 1.0), ("torch", ratio))}
        return report.Section(name, units, results, LIMITS)
    sections = [family("training", 1.75), family("sizes", 1.25, 3.0)]
    assert "| net, 3 sizes | 1.25 |" in report.least_table(sections)
    assert report.least_table(sections[:1]) == ""


def test_rows_can_be_picked(tmp_path):
    _, results = run(tmp_path, "kernels", "--unit", "elementwise", "--only", "softmax")
    assert [r["row"] for r in results["families"][0]["rows"]] == ["softmax", "softmax f+b"]


def test_rows_run_beside_other_work(tmp_path):
    text, results = run(tmp_path, "busy", "--unit", "LeNet")
    rows = {(r["unit"], r["row"]): r for r in results["families"][0]["rows"]}
    assert {load for _, load in rows} == set(busy.SHARES) and len({unit for unit, _ in rows}) == 2
    assert [key for key, r in rows.items() if r["errors"] or not r["seconds"]["proa"][0] > 0] == []
    assert text.count("#### ") == 3 and "of its fair share or more" in text


def test_a_stopped_process_stands_in_for_a_quota(monkeypatch):
    monkeypatch.setattr(busy, "group_folders", lambda: [])
    quota = busy.Quota(1.5, 2)
    assert quota.command(["x"]) == ["x"] and "stopped for 25%" in quota.title(1.5)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

    def state():
        return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    with quota.over(process.pid):
        end, seen = time.monotonic() + 60, set()
        while not {"T", "S"} <= seen and time.monotonic() < end:
            seen.add(state())
            time.sleep(0.005)
    assert {"T", "S"} <= seen and state() != "T"
    process.kill()
    process.wait()


def test_kept_shares_and_ratios():
    times = {"quiet": 1.0, "spinners": 2.5, "training": 1.6, "quota": 2.0}
    results = {("busy", busy.RESIDUAL, way): [{"rows": {load: {"seconds": s * factor} for load, s in times.items()}}]
               for way, factor in (("proa", 1), ("torch", 3))}
    tables = busy.Tables([{"name": busy.RESIDUAL}], results, dict(zip(busy.SHARES, ["quiet", "a", "b", "c"])))
    kept = [tables.kept(busy.RESIDUAL, load, "proa") for load in ("spinners", "training", "quota")]
    assert [round(k, 3) for k in kept] == [0.8, 1.25, 0.667]
    text = tables.markdown()
    assert "takes 2.50 × its quiet time" in text and "1 of 1 rows. In the median row Proa is 3.00 × as fast as torch" in text
    assert f"not in {busy.RESIDUAL} (0.67)" in text and "| 1 s | 2.5 s ±0% | 0.80 | 3 s | 7.5 s ±0% | 0.80 | 3.00 |" in text


def test_two_builds_are_compared(tmp_path):
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks/before.py"), str(BUILD), "--families", "dispatch", "--rounds", "1",
                           "--within", "10", "--environment", "FLAGS_verbose=0"], text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dispatch: 3 rows, geometric mean of now ÷ before")


def section(*rows, results):
    unit = {"name": "u", "skip": [], "rows": [{"flops": 0, "bytes": 0, "limit": "copy", **r} for r in rows]}
    return report.Section("kernels", [unit], results, LIMITS)


def test_ratios_fractions_and_failures():
    results = {("kernels", "u", "proa"): [{"rows": {"x": {"seconds": s}, "bad": {"seconds": 2.0}}} for s in (1.0, 3.0, 2.0)],
               ("kernels", "u", "torch"): [{"rows": {"x": {"seconds": 6.0}, "bad": {"seconds": 1.0}}}],
               ("kernels", "u", "paddle"): [{"error": "went away"}]}
    s = section({"name": "x", "bytes": 10e9}, {"name": "bad"}, {"name": "never measured"}, results=results)
    x, bad = s.lines[0], s.lines[1]
    assert x.median("proa") == 2.0 and x.ratio("torch") == 3.0 and x.worst() == 3.0
    assert x.fraction(s.limits) == 0.5  # 10 GB at 10 GB/s in two seconds
    assert bad.worst() == 0.5 and bad.fraction(s.limits) is None
    text = s.markdown()
    assert "| x | 2 s ±50% | 6 s ±0% | fails | 3.00 | – | 0.50 |" in text
    assert "at least as fast as the fastest peer in 1 of 2 rows" in text and "Slower than a peer: bad (0.50)" in text
    assert "- x, paddle: went away" in text


def test_rows_held_against_plain_work():
    results = {("kernels", "u", "proa"): [{"rows": {"plain": {"seconds": 1.0}, "save": {"seconds": 1.25}}}],
               ("kernels", "u", "torch"): [{"rows": {"plain": {"seconds": 0.5}, "save": {"seconds": 2.5}}}]}
    s = section({"name": "plain", "limit": "itself"}, {"name": "save", "limit": "plain"}, results=results)
    assert s.lines[1].fraction(s.limits) == 0.8 and s.lines[0].worst() is None


def test_a_bound_is_the_later_of_arithmetic_and_memory():
    results = {("kernels", "u", "proa"): [{"rows": {"a": {"seconds": 1.0}, "sort": {"seconds": 0.01}}}]}
    s = section({"name": "a", "flops": 50e9, "bytes": 2e9, "limit": "read"}, {"name": "sort", "limit": "radix", "bytes": 1},
                results=results)
    assert s.lines[0].fraction(s.limits) == 0.5 and s.lines[1].fraction(s.limits) == 0.5


def test_seconds_are_readable():
    assert [report.seconds_text(s) for s in (12.34, 0.0123, 1.5e-6, 2.5e-8)] == ["12.3 s", "12.3 ms", "1.5 µs", "25 ns"]


def test_rounds_count_by_how_quiet_the_machine_was():
    q = quiet.Quiet([], {})
    q.probes = [{"fma": 100.0, "read": 50.0}] * 8 + [{"fma": 50.0, "read": 20.0}] * 3
    slow, usual = q.probes[-1:] * 2, q.probes[:2]
    assert q.score(usual) == 1 and q.score(slow) == 0.45 and q.score([]) == 1
    tries = [("a", usual), ("b", slow), ("c", usual)]
    assert q.enough(tries, 2) and not q.enough(tries, 3)
    tries.append(("d", usual))
    assert [found for found, _ in q.quietest(tries, 3)] == ["a", "c", "d"]
    assert "3 of 4, of which 0" in q.text()
    assert [found for found, _ in q.quietest(tries[:2], 2)] == ["a", "b"] and "5 of 6, of which 1" in q.text()


def test_a_round_is_probed_around_every_process(tmp_path, monkeypatch):
    """The machine's limits, which the other tests have measured, are given."""
    measured = []
    monkeypatch.setattr(runner.Runner, "measure_limits", lambda self: (measured.append(1), self.limits.extend(LIMITS)))
    runner.Runner(runner.arguments(["kernels", "--rounds", "2", "--again", "1", "--ways", "proa", "--unit", "elementwise", "--only", "relu",
                                    "--out", str(tmp_path)])).run()
    assert len(measured) in (2, 3)
    assert "Rounds of a unit count by" in (tmp_path / "results.md").read_text()
    rows = json.loads((tmp_path / "results.json").read_text())["families"][0]["rows"]
    assert [len(row["seconds"]["proa"]) for row in rows] == [2]
