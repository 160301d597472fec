"""Programs between real Paddle and Proa, both ways: what Paddle exports runs here and agrees, and what was
loaded here and saved again runs in Paddle's predictor and jit.load. Needs the oracle's environment."""
import pathlib
import shutil
import sys

import numpy as np
import pytest

import oracle
import programs
from conftest import BUILD

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["mlp", "two_inputs", "lenet", "resnet18", "mobilenet_v2", "encoder", "algebra", "tensors", "control", "unpooled",
          "normed", "lstm"]


@pytest.fixture(scope="session")
def lib():
    return programs.open_library()


def recorded(folder, name):
    data = np.load(folder / f"{name}.npz")
    take = lambda stem: [data[f"{stem}{i}"] for i in range(sum(k.startswith(stem) for k in data.files))]
    return take("in"), take("out")


def agree(got, expected, limit):
    assert len(got) == len(expected)
    for g, e in zip(got, expected):
        assert g.shape == e.shape and g.dtype == e.dtype
        assert np.max(np.abs(g - e)) <= limit * np.ptp(e)


@pytest.mark.parametrize("name", MODELS)
def test_paddles_models_run_here(lib, exported, name):
    inputs, expected = recorded(exported, name)
    p = programs.Program(lib, exported / name)
    agree(p.run(*inputs), expected, 1e-4)
    one = p.run(*[v[:1] for v in inputs])  # another batch length: another plan of the same program
    agree([v for v in one], [v[:1] for v in expected], 1e-4)
    p.close()


@pytest.mark.parametrize("name", MODELS)
def test_every_way_to_run_them(exported, name):
    """jit.load twice (what a call writes stays), a predictor with passes and one without."""
    sys.path.insert(0, str(BUILD / "python"))
    import proa
    from proa import inference
    inputs, expected = recorded(exported, name)
    loaded = proa.jit.load(str(exported / name))
    for _ in range(2):
        got = loaded(*map(proa.to_tensor, inputs))
        agree([t.numpy() for t in (got if isinstance(got, (list, tuple)) else [got])], expected, 1e-4)
    for optimized in (True, False):
        config = inference.Config(f"{exported / name}.pdmodel", f"{exported / name}.pdiparams")
        config.switch_ir_optim(optimized)
        outs = inference.create_predictor(config).run([proa.to_tensor(v) for v in inputs])
        agree([t.numpy() for t in outs], expected, 1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_saved_again_they_run_in_paddle(lib, exported, tmp_path, name):
    p = programs.Program(lib, exported / name)
    inputs = p.names("input"), p.names("output")
    p.save(tmp_path / name)
    p.close()
    shutil.copy(exported / f"{name}.npz", tmp_path)
    again = programs.Program(lib, tmp_path / name)
    assert (again.names("input"), again.names("output")) == inputs
    again.close()
    oracle.ask(HERE / "check_models.py", tmp_path / name)


def test_input_order_is_by_column(lib, exported):
    p = programs.Program(lib, exported / "two_inputs")
    assert p.names("input") == ["z", "a"]
    p.close()


def test_damaged_files_are_refused(lib, exported, tmp_path):
    for ext in ("pdmodel", "pdiparams"):
        shutil.copy(exported / f"mlp.{ext}", tmp_path / f"m.{ext}")
    params = (tmp_path / "m.pdiparams").read_bytes()
    for bad in (params[:-1], params + b"\0", params[:10], b""):
        (tmp_path / "m.pdiparams").write_bytes(bad)
        with pytest.raises(programs.ProaError, match="cut off|behind"):
            programs.Program(lib, tmp_path / "m")
    (tmp_path / "m.pdiparams").unlink()
    with pytest.raises(programs.ProaError, match="parameter file"):
        programs.Program(lib, tmp_path / "m")
    model = (tmp_path / "m.pdmodel").read_bytes()
    (tmp_path / "m.pdmodel").write_bytes(model.replace(b"matmul_v2", b"matmul_v9").replace(b"\x04relu", b"\x04rexu"))
    with pytest.raises(programs.ProaError, match="matmul_v9.*rexu|rexu.*matmul_v9"):
        programs.Program(lib, tmp_path / "m")
    (tmp_path / "m.pdmodel").write_bytes(model[: len(model) // 2])
    with pytest.raises(programs.ProaError):
        programs.Program(lib, tmp_path / "m")
    with pytest.raises(programs.ProaError, match="no program at"):
        programs.Program(lib, tmp_path / "nothing")


def test_old_folders_are_read(lib, exported, tmp_path):
    inputs, expected = recorded(exported, "mlp")
    shutil.copy(exported / "mlp.pdmodel", tmp_path / "__model__")
    shutil.copy(exported / "mlp.pdiparams", tmp_path / "__params__")
    p = programs.Program(lib, tmp_path)
    agree(p.run(*inputs), expected, 1e-4)
    p.close()
