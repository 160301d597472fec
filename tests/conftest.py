"""For all Python tests: where the build is (PROA_BUILD, default build), for child processes, too; modules beside this one are
found; fixtures of several folders.

Models that a test exported, here or with real Paddle, are kept in build/tests/exported, where tests/exported/ finds
them. Each program once, under the hash of its bytes."""
import hashlib
import os
import pathlib
import shutil
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()
PACKAGE = str(BUILD / "python")
sys.path[:0] = [PACKAGE, str(ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join([PACKAGE, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("FLAGS_cuda_cache", "0")  # tests leave nothing in the user's cache
import oracle

NEEDS_PADDLE = pytest.mark.skipif(not oracle.PYTHON.exists(), reason="real Paddle is not installed: tools/bootstrap --oracle")
LONGEST = ("test_every_family_runs", "[training_vision]", "test_quantize_digits.py", "test_two_hosts")
WRONG = ("damage", "refuse", "bad", "adversarial", "wrong", "unknown")  # tests that write what nothing should load


def keep(source, target):
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)


def parts_of(model):
    """The model's files, and what they are called in the collection."""
    if model.name == "__model__":
        return [(one, one.name) for one in model.parent.iterdir() if one.is_file()]
    parameters = model.with_suffix(".pdiparams")
    return [(model, "m.pdmodel"), *[(parameters, "m.pdiparams")] * parameters.exists()]


def pytest_configure(config):
    # A function of a test that to_static could no longer convert would pass as plain Python.
    config.addinivalue_line("filterwarnings", "error:to_static.*runs as plain Python:UserWarning")


def pytest_collection_modifyitems(items):
    """The longest tests come first, the longest of all at the head, so that no worker waits for them at the end."""
    items.sort(key=lambda item: next((i for i, name in enumerate(LONGEST) if name in item.nodeid), len(LONGEST)))


def pytest_sessionfinish(session):
    """In each worker: everything below its temporary folder."""
    base = getattr(getattr(session.config, "_tmp_path_factory", None), "_basetemp", None)
    for model in () if base is None else (*base.rglob("*.pdmodel"), *base.rglob("__model__")):
        if model.is_symlink() or any(word in str(model.relative_to(base)) for word in WRONG):
            continue
        folder = BUILD / "tests/exported" / hashlib.sha256(model.read_bytes()).hexdigest()[:16]
        try:
            folder.mkdir(parents=True)
        except FileExistsError:  # another test or worker has it
            continue
        (folder / "from.txt").write_text(f"{model.relative_to(base)}\n", errors="surrogateescape")
        for source, name in parts_of(model):
            keep(source, folder / name)


def once(factory, name, make):
    """The file or folder that make(path) writes, which one of the run's workers makes and all read."""
    base = factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    part, failed = out.with_name("part-" + name), out.with_name(name + ".failed")  # np.savez keeps the suffix .npz
    try:
        os.close(os.open(out.with_name(name + ".lock"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        while not out.exists():
            assert not failed.exists(), f"{name}: another worker could not make it"
            time.sleep(0.1)
        return out
    try:
        make(part)
        part.rename(out)
    except BaseException:
        failed.touch()
        raise
    return out


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """A folder of models that real Paddle exported (io/export_models.py)."""
    if not oracle.PYTHON.exists():
        pytest.skip("real Paddle is not installed")
    return once(tmp_path_factory, "exported-models", lambda out: oracle.ask(ROOT / "tests/io/export_models.py", out))


@pytest.fixture
def program():
    """Static mode, in which a program, a startup program, a scope and names are the test's own; the program."""
    import proa as paddle
    from proa import fluid
    paddle.enable_static()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        yield fluid.default_main_program()
    paddle.disable_static()


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
    lines = (ROOT / "tests/ops/skips.txt").read_text().splitlines()
    gaps = sum(bool(line.strip()) and not line.startswith("#") for line in lines)
    terminalreporter.write_line(f"matrix: {len(table)} ops, {cases} cases; {modes} skips in the table, {gaps} in skips.txt")
