"""Elementwise chains of programs as one kernel that is compiled at run time (emulated, unless PROA_GPU says that there is
a GPU): results are those of the ops one after the other, and of the CPU; what is compiled is kept, in memory and on disk."""
import os
import pathlib
import stat
import subprocess
import sys

import numpy as np
import pytest

from conftest import BUILD, ROOT  # finds the others
import matrix
import proa as paddle
import test_devices
from proa import _core


pytestmark = pytest.mark.usefixtures("gpu")


def count(name):
    return _core.device_property("gpu:0", name)


def fused(device, arrays, steps, dtype="float32", layout=None):
    tensors = [_core.cast(_core.from_numpy(a), dtype) for a in arrays]
    if device != "cpu":
        tensors = [_core.to_device(t, device) for t in tensors]
    if layout:
        tensors = [layout(t) for t in tensors]
    with test_devices.on(device):
        outs = _core.fused_elementwise(tensors, steps=steps)
        return [_core.cast(_core.to_device(t, "cpu"), "float64").numpy() for t in outs]


def one_by_one(device, arrays, steps, dtype="float32"):
    """The same as ops of their own, on the device."""
    made, outs = [], []
    with test_devices.on(device):
        x = [_core.to_device(_core.cast(_core.from_numpy(a), dtype), device) for a in arrays]
        for step in steps.split("; "):
            words = step.split()
            out = words[0] == "out"
            op, *rest = words[1:] if out else words[2:]
            given = [x[int(w[1:])] if w[0] == "x" else made[int(w[1:])] for w in rest if "=" not in w]
            attrs = {k: v == "true" if v in ("true", "false") else float(v) for k, v in (w.split("=") for w in rest if "=" in w)}
            made.append(getattr(_core, op)(*given, **attrs))
            if out:
                outs.append(made[-1])
        return [_core.cast(_core.to_device(t, "cpu"), "float64").numpy() for t in outs]


def formulas():
    """The ops that may stand in a chain, three operands at most, with numbers only beside them."""
    for op in matrix.load_table(BUILD):
        tensors = [f for f in op["fields"] if f["role"] == "IN"]
        attrs = [f for f in op["fields"] if f["role"] == "ATTR"]
        if all(f["kind"] in ("FLOAT", "BOOL") and f["default"] is not None for f in attrs) and all(f["kind"] == "TENSOR" for f in tensors):
            yield op["name"], len(tensors)


def compiled_now(run):
    before = count("kernels_compiled"), count("kernels_refused")
    result = run()
    assert count("kernels_refused") == before[1], _core.device_describe("gpu:0")
    return result, count("kernels_compiled") - before[0]


def takes(op, n, dtype):
    """Whether fused_elementwise has the op, by asking the CPU."""
    x = [np.float32([0.5])] * n
    try:
        fused("cpu", x, f"out {op} " + " ".join(f"x{i}" for i in range(n)), dtype)
    except (ValueError, TypeError, RuntimeError):
        return False
    return True


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_every_formula_is_what_its_op_is(dtype):
    rng = np.random.RandomState(4)
    x = [rng.uniform(0.05, 0.95, (6, 40)) for _ in range(3)]
    names = [(op, n) for op, n in formulas() if takes(op, n, dtype)]
    assert len(names) > 60, "the table has lost its formulas, or this test its way to find them"
    for at in range(0, len(names), 9):
        part = names[at:at + 9]
        steps = "; ".join(f"out {op} " + " ".join(f"x{i}" for i in range(n)) for op, n in part)
        got, compiled = compiled_now(lambda: fused("gpu:0", x, steps, dtype))
        assert compiled == 1, steps
        for (op, _), a, b in zip(part, got, one_by_one("gpu:0", x, steps, dtype)):
            assert np.array_equal(a, b, equal_nan=True), (op, dtype, np.abs(a - b).max())
        if dtype.startswith("float") and dtype != "float16":
            for (op, _), a, b in zip(part, got, fused("cpu", x, steps, dtype)):
                np.testing.assert_allclose(a, b, rtol=2e-6 if dtype == "float32" else 1e-12, atol=1e-6, err_msg=op)


STEPS = ("t0 = scale x0 scale=0.5 bias=-0.25 bias_after_scale=false; t1 = clip t0 min=-0.4 max=0.3; t2 = multiply t1 x1; "
         "out gelu t2 approximate=true; t4 = pow t2 y=2.0; t5 = add t4 x2; out leaky_relu t5 negative_slope=0.3; "
         "t7 = subtract t5 x0; out maximum t7 t2")


@pytest.mark.parametrize("shapes", [[(8, 64), (8, 64), (8, 64)], [(8, 64), (64,), (8, 1)], [(5, 7), (7,), ()],
                                    [(3, 4, 5, 6), (4, 1, 6), (3, 1, 5, 1)], [(1,), (1,), ()], [(70000,), (1,), (70000,)],
                                    [(0, 4), (4,), (0, 1)]])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_broadcasts(shapes, dtype):
    rng = np.random.RandomState(5)
    x = [rng.standard_normal(s) for s in shapes]
    for a, b in zip(fused("gpu:0", x, STEPS, dtype), one_by_one("gpu:0", x, STEPS, dtype)):
        assert a.shape == shapes[0] and np.array_equal(a, b)


def test_casts_within_a_chain():
    """Each value has its dtype, computes in float32 and is rounded; on both devices as the ops one by one."""
    rng = np.random.RandomState(9)
    arrays = [rng.standard_normal(s).astype("float32") for s in ((6, 40), (40,), (6, 1))]
    dtypes = ["float32", "bfloat16", "float16"]
    steps = ("t0 = cast x0 dtype=bfloat16; out multiply t0 x1; t2 = cast x2 dtype=float32; t3 = cast t1 dtype=float32; "
             "t4 = add t2 t3; out gelu t4; t6 = cast t5 dtype=float16; out add t6 x2")
    for device in "cpu", "gpu:0":
        for shape in (6, 40), (6, 37):
            with test_devices.on(device):
                x = [_core.to_device(_core.cast(_core.from_numpy(a[..., :shape[1]].copy()), d), device) for a, d in zip(arrays, dtypes)]
                got = _core.fused_elementwise(x, steps=steps)
                low = _core.multiply(_core.cast(x[0], "bfloat16"), x[1])
                high = _core.gelu(_core.add(_core.cast(x[2], "float32"), _core.cast(low, "float32")))
                want = [low, high, _core.add(_core.cast(high, "float16"), x[2])]
                for a, b in zip(got, want):
                    assert a.dtype == b.dtype
                    np.testing.assert_array_equal(_core.cast(a, "float32").numpy(), _core.cast(b, "float32").numpy())


def test_chains_of_a_program_of_mixed_precision():
    """Under autocast the casts and what follows the products are one launch between products, with the ops' own bits."""
    rng = np.random.RandomState(11)
    net = paddle.nn.Linear(32, 32)

    def step(x):
        h = paddle.nn.functional.silu(net(x)) * 0.5
        return net(h + 1).astype("float32") * x

    def under(fn):
        def run(x):
            with paddle.amp.auto_cast(dtype="bfloat16", level="O1"):
                return fn(x)
        return run
    with test_devices.on("gpu:0"), paddle.no_grad():
        net.to("gpu:0")
        x = paddle.to_tensor(rng.standard_normal((8, 32)).astype("float32"))
        want, fast = under(step)(x), paddle.jit.to_static(under(step))
        before = count("launches")
        under(step)(x)
        eager = count("launches") - before
        for _ in range(2):
            out = fast(x)
        before = count("launches")
        out = fast(x)
        assert count("launches") - before < eager
        np.testing.assert_array_equal(out.numpy(), want.numpy())
    net.to("cpu")


def test_strides():
    x = [np.random.RandomState(6).standard_normal((12, 20)) for _ in range(3)]
    want = one_by_one("gpu:0", [a.T for a in x], STEPS)
    got = fused("gpu:0", x, STEPS, layout=lambda t: _core.transpose(t, [1, 0]))
    for a, b in zip(got, want):
        assert np.array_equal(a, b)


def chain(x, y):
    return paddle.tanh(paddle.nn.functional.gelu(x + y) * x + y)


def run_compiled():
    """Launches, waits and compilations of three steady runs of a compiled function, whose results are the CPU's."""
    rng = np.random.RandomState(7)
    x, y = rng.standard_normal((9, 32)).astype("float32"), rng.standard_normal(32).astype("float32")
    want = chain(paddle.to_tensor(x), paddle.to_tensor(y)).numpy()
    names, fast = ("launches", "waits", "kernels_compiled"), paddle.jit.to_static(chain)
    with test_devices.on("gpu:0"), paddle.no_grad():
        given = [paddle.to_tensor(a) for a in (x, y)]
        outs = [fast(*given) for _ in range(2)]
        before = [count(name) for name in names]
        outs += [fast(*given) for _ in range(3)]
        counted = [count(name) - b for name, b in zip(names, before)]
        for out in outs:
            np.testing.assert_allclose(out.numpy(), want, rtol=2e-6, atol=1e-6)
    return counted


def test_a_chain_of_a_program_is_one_launch():
    assert run_compiled() == [3, 0, 0], "launches, waits and compilations of three steady runs"


# ---- a process of its own -----------------------------------------------------------------------------------------------

SCRIPT = """
import sys
sys.path[:0] = [{tests!r}, {tests!r} + "/devices"]
import test_cuda_fused as t
t._core.load_devices(str(t.test_devices.plugin_of("gpu:0")))
counted = t.run_compiled()
print("counted", *counted, *[t.count(n) for n in ("kernels_compiled", "kernels_read", "kernels_refused")])
print("describe", t._core.device_describe("gpu:0"))
"""


def process(**env):
    """Launches of three steady runs; kernels compiled, read from disk, refused; the device's description."""
    script = SCRIPT.format(tests=str(ROOT / "tests"))
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}
    return int(lines["counted"][0]), [int(n) for n in lines["counted"][3:]], " ".join(lines["describe"])


def test_without_a_compiler_the_ops_run_one_by_one():
    if os.environ.get("PROA_GPU"):
        pytest.skip("NVRTC is there")
    launches, kernels, described = process(PROA_EMULATE_NO_COMPILER="1")
    assert launches == 15 and kernels == [0, 0, 0]
    assert "no fused chains: the emulator was told to have no compiler" in described


def test_compiled_kernels_are_kept_on_disk(tmp_path):
    env = {"XDG_CACHE_HOME": str(tmp_path), "FLAGS_cuda_cache": "1"}
    folder = tmp_path / "proa/cuda"
    assert process(**env)[1] == [1, 0, 0]
    file, = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(file.stat().st_mode) == 0o600
    whole = file.read_bytes()
    assert process(**env)[1] == [0, 1, 0]

    def replaced(damage):
        damage()
        kernels = process(**env)[1]
        assert file.read_bytes() == whole and list(folder.iterdir()) == [file]
        return kernels
    assert replaced(lambda: file.write_bytes(whole[:-5])) == [1, 0, 0]
    assert replaced(lambda: file.write_bytes(whole[:-5] + b"x" + whole[-4:])) == [1, 0, 0]
    assert replaced(lambda: file.write_bytes(whole.replace(b"add_F32", b"sub_F32", 1))) == [1, 0, 0]
    assert replaced(lambda: file.write_bytes(b"")) == [1, 0, 0]
    assert replaced(lambda: file.chmod(0o666)) == [1, 0, 0]

    def link():
        (tmp_path / "elsewhere").write_bytes(whole)
        file.unlink()
        file.symlink_to(tmp_path / "elsewhere")
    assert replaced(link) == [1, 0, 0]


def test_the_folder_is_bounded(tmp_path):
    folder = tmp_path / "proa/cuda"
    folder.mkdir(parents=True, mode=0o700)
    for i in range(1024):
        (folder / f"{i:032x}").write_bytes(b"")
        os.utime(folder / f"{i:032x}", (1000 + (i * 7) % 1024, 1000 + (i * 7) % 1024))
    assert process(XDG_CACHE_HOME=str(tmp_path), FLAGS_cuda_cache="1")[1] == [1, 0, 0]
    left = {f.name for f in folder.iterdir()}
    assert len(left) == 1024 and f"{0:032x}" not in left, "the oldest one has gone"


def test_the_flag_keeps_nothing(tmp_path):
    assert process(XDG_CACHE_HOME=str(tmp_path), FLAGS_cuda_cache="0")[1] == [1, 0, 0]
    assert not (tmp_path / "proa").exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "proa").write_text("no folder")
    assert process(XDG_CACHE_HOME=str(tmp_path), FLAGS_cuda_cache="1")[1] == [1, 0, 0]
    assert pathlib.Path(tmp_path / "proa").read_text() == "no folder"
