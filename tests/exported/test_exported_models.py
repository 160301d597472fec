"""proa inspect, run and diff on every model that the other tests exported (tests/conftest.py keeps them), whoever wrote
it: run answers what the predictor answers, bit for bit, and refuses what the predictor refuses."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

BUILD = pathlib.Path(os.environ.get("PROA_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve()
MODELS = sorted(one for one in (BUILD / "tests/exported").glob("*") if one.is_dir())
MIN = int(os.environ.get("PROA_EXPORTED_MIN", "0"))  # after a whole test run there must be so many

sys.path.insert(0, str(BUILD / "python"))
os.environ["FLAGS_num_threads"] = "1"


def command(*words):
    return subprocess.run([str(BUILD / "bin/proa"), *map(str, words)], capture_output=True, text=True, timeout=60)


def paths(folder):
    """Arguments of the command, and of Config."""
    if (folder / "__model__").exists():
        whole = folder / "__params__"
        return folder, ([str(folder / "__model__"), str(whole)] if whole.exists() else [str(folder)])
    return folder / "m.pdmodel", [str(folder / "m.pdmodel"), str(folder / "m.pdiparams")]


def feed_of(inputs):
    random = np.random.RandomState(5)
    feed = {}
    for one in inputs:
        shape = [2 if d < 0 else d for d in one["shape"]]
        dtype = np.dtype({"bfloat16": "uint16"}.get(one["dtype"], one["dtype"]))  # which both refuse: NumPy has none
        if "@LOD_" in one["name"]:
            feed[one["name"]] = np.array([0, 1, 2], "int64")
        elif dtype.kind == "f":
            feed[one["name"]] = random.uniform(-1, 1, shape).astype(dtype)
        else:
            feed[one["name"]] = np.ones(shape, dtype)
    return feed


def predicted(where, feed):
    """The predictor's answer, or its refusal."""
    from proa import inference
    try:
        predictor = inference.create_predictor(inference.Config(*where))
        for name in predictor.get_input_names():
            handle = predictor.get_input_handle(name)
            handle.copy_from_cpu(feed[name])
            levels = [feed[one].tolist() for one in sorted(feed) if one.startswith(name + "@LOD_")]
            if levels:
                handle.set_lod(levels)
        predictor.run()
        return {n: predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()}
    except Exception as error:
        return error


def test_enough_were_exported():
    assert len(MODELS) >= MIN
    if not MODELS:
        pytest.skip("no other test has exported a model yet")


@pytest.mark.parametrize("folder", MODELS, ids=lambda one: one.name)
def test_command(folder, tmp_path):
    source = (folder / "from.txt").read_text(errors="surrogateescape")
    path, where = paths(folder)
    looked = command("inspect", path, "--json")
    if looked.returncode:  # a test of one op may save what only a part of a program is: it is fed arrays, for one
        assert looked.returncode == 2 and looked.stderr, source
        from proa import inference
        with pytest.raises(Exception):
            inference.create_predictor(inference.Config(*where))
        return
    seen = json.loads(looked.stdout)
    same = command("diff", path, path)
    assert (same.returncode, same.stdout, same.stderr) == (0, "", ""), source
    feed = feed_of(seen["inputs"])
    np.savez(tmp_path / "in.npz", **feed)
    ran = command("run", path, "--inputs", tmp_path / "in.npz", "--save", tmp_path / "out.npz")
    want = predicted(where, feed)
    if isinstance(want, Exception):
        assert ran.returncode == 2 and ran.stderr, f"{source}the predictor refuses: {want}"
        return
    assert ran.returncode == 0, source + ran.stderr
    got = np.load(tmp_path / "out.npz")
    assert sorted(got.files) == sorted(want), source
    for name, one in want.items():
        assert got[name].dtype == one.dtype and got[name].shape == one.shape, (source, name)
        assert got[name].tobytes() == np.ascontiguousarray(one).tobytes(), (source, name)
