"""For all Python tests: models that a test exported, here or with real Paddle, are kept in build/tests/exported, where
tests/exported/ finds them. Each program once, under the hash of its bytes."""
import hashlib
import os
import pathlib
import shutil

BUILD = pathlib.Path(os.environ.get("PROA_BUILD", pathlib.Path(__file__).resolve().parents[1] / "build")).resolve()
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
