"""Measures one unit in one framework and prints a line of JSON: run.py starts it, once a round.

    python benchmarks/worker.py WAY FAMILY UNIT [--tiny] [--threads N] [--folder F] [--only TEXT] [--serve]

WAY: proa, proa+c, paddle, torch, onnxruntime, torch+compile. UNIT "prepare" exports what `inference` runs, "list" names the units.
--serve: prepares the unit, and measures it when standard input says so (busy.py)."""
import argparse
import json
import os

import common
import report


def families():
    import busy
    import files
    import inference
    import kernels
    import ops
    import overhead
    import training
    return {"overhead": overhead.units, "kernels": kernels.units, "ops": ops.units, "training": training.units,
            "sizes": training.drawn_units, "compiled": training.compiled_units, "inference": inference.units, "io": files.units, "busy": busy.units}


def adapter(way, threads, folder):
    from frameworks import framework
    fw = framework(way, threads)
    fw.way, fw.threads, fw.folder = way, threads, folder
    return fw


def flops_of(call):
    """Floating-point operations of one call, as Proa's profiler counts them."""
    from proa import profiler
    with profiler.Profiler(on_trace_ready=lambda p: None) as p:
        call()
    return sum(row[7] for row in p.profiler_result.rows)


def measure_unit(fw, unit, only="", tiny=False, count=False):
    """{row: its figures (seconds a call, …) or {"error": why it could not be measured}}."""
    found = {}
    for row in unit.rows:
        if only and only not in row.name:
            continue
        try:
            call = row.make(fw)
            if call is None:
                continue
            seconds = 0.001 if tiny else unit.seconds
            if hasattr(call, "measure"):  # a process of its own
                found[row.name] = call.measure(seconds)
                continue
            first, seconds = common.measure(call, seconds)
            found[row.name] = {"seconds": seconds / row.per, "first": first}
            if count and fw.name == "proa":
                found[row.name]["flops"] = flops_of(call) / row.per
        except Exception as problem:  # noqa: BLE001: a peer that cannot is a line of the table, not the end of the run
            found[row.name] = {"error": f"{type(problem).__name__}: {str(problem).strip().splitlines()[:1]}"[:200]}
        call = None
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("way")
    parser.add_argument("family")
    parser.add_argument("unit")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--only", default="")
    parser.add_argument("--serve", action="store_true")
    a = parser.parse_args()
    units = families()[a.family](a.tiny)
    if a.unit == "list":
        print(json.dumps([{"name": u.name, "skip": u.skip, "rows": [
            {"name": r.name, "flops": r.flops, "bytes": float(r.bytes), "limit": r.limit} for r in u.rows]} for u in units]))
        return
    os.makedirs(a.folder, exist_ok=True)
    fw = adapter(a.way, a.threads, a.folder)
    if a.unit == "prepare":
        import inference
        inference.prepare(fw, a.folder, a.tiny)
        return
    if a.serve:
        import busy
        busy.serve(fw, next(u for u in units if u.name == a.unit))
        return
    idle = common.memory()
    rows = measure_unit(fw, next(u for u in units if u.name == a.unit), a.only, a.tiny, a.family in report.STEPS)
    memory = {"idle_bytes": idle, "peak_bytes": common.memory()}
    for row in rows.values():
        memory.update({key: row.pop(key) for key in memory if key in row})
    print(json.dumps({"rows": rows, **memory}))


if __name__ == "__main__":
    main()
