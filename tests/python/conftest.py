"""Paths and options of the Python tests: the build folder comes from PROA_BUILD (default build)."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
sys.path.insert(0, str(BUILD / "python"))
sys.path.insert(0, str(ROOT / "tests"))
os.environ.setdefault("FLAGS_cuda_cache", "0")  # tests leave nothing in the user's cache


@pytest.fixture(scope="module")
def gpu():
    """gpu:0, real or emulated, for a module of tests; afterwards the CPU is the device again."""
    import test_devices
    path = test_devices.plugin_of("gpu:0")
    if path is None:
        pytest.skip("gpu:0: its plug-in is not built here")
    from proa import _core
    _core.load_devices(str(path))
    yield
    _core.set_device("cpu")


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
