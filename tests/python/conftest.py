"""Paths and options of the Python tests: the build folder comes from PROA_BUILD (default build)."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
sys.path.insert(0, str(BUILD / "python"))
sys.path.insert(0, str(ROOT / "tests"))
os.environ.setdefault("FLAGS_cuda_cache", "0")  # tests leave nothing in the user's cache


def pytest_terminal_summary(terminalreporter):
    """A line each on what the op table's matrix and the comparison of modes covered."""
    compared = sum(n for rs in terminalreporter.stats.values() for r in rs if getattr(r, "when", "") == "call"
                   for key, n in r.user_properties if key == "in three modes")
    if compared:
        terminalreporter.write_line(f"modes: {compared} cases eagerly, under to_static and in static mode")
    if not any("test_ops.py" in r.nodeid for rs in terminalreporter.stats.values() for r in rs if hasattr(r, "nodeid")):
        return
    import matrix
    table = matrix.load_table(BUILD)
    cases = sum(1 for op in table for _ in matrix.cases(op))
    modes = sum(len(op["skip"]) if isinstance(op["skip"], dict) else bool(op["skip"]) for op in table)
    lines = (pathlib.Path(__file__).parent / "skips.txt").read_text().splitlines()
    gaps = sum(bool(line.strip()) and not line.startswith("#") for line in lines)
    terminalreporter.write_line(f"matrix: {len(table)} ops, {cases} cases; {modes} skips in the table, {gaps} in skips.txt")
