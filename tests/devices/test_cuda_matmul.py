"""Large products on gpu:0 (emulated, unless PROA_GPU says that there is one) whose rows do not begin at multiples of 16 bytes: they
go through padded copies, and give what the CPU's give."""
import numpy as np
import pytest

from proa import _core
from test_devices import on

pytestmark = pytest.mark.usefixtures("gpu")
RNG = np.random.RandomState(4)
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-3}


@pytest.fixture(autouse=True)
def tf32():
    _core.set_flag("allow_tf32", "1")
    yield
    _core.set_flag("allow_tf32", "0")


def normal(*shape):
    return RNG.standard_normal(shape).astype("float32")


def run(device, dtype, op, arrays, **attrs):
    """The outputs in float32, and how many kernels and copies that took."""
    given = [_core.to_device(_core.cast(_core.from_numpy(a), dtype), device) for a in arrays]
    with on(device):
        before = _core.device_property("gpu:0", "launches")
        outs = getattr(_core, op)(*given, **attrs)
        launches = _core.device_property("gpu:0", "launches") - before
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        return [_core.to_device(_core.cast(t, "float32"), "cpu").numpy() for t in outs], launches


def same(dtype, op, *arrays, **attrs):
    got, launches = run("gpu:0", dtype, op, arrays, **attrs)
    want, _ = run("cpu", dtype, op, arrays, **attrs)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=0, atol=TOLERANCE[dtype] * np.abs(w).max())
    return launches


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("transpose_x", [False, True])
@pytest.mark.parametrize("transpose_y", [False, True])
def test_products(dtype, transpose_x, transpose_y):
    m, n, k = 256, 259, 261
    x, y = normal(*((k, m) if transpose_x else (m, k))), normal(*((n, k) if transpose_y else (k, n)))
    same(dtype, "matmul", x, y, transpose_x=transpose_x, transpose_y=transpose_y)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_bias_and_addend(dtype):
    same(dtype, "linear", normal(270, 264), normal(264, 257), normal(257))
    same(dtype, "addmm", normal(270, 257), normal(270, 264), normal(264, 257), alpha=0.5, beta=2.0)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_sums_of_a_weight_gradient(dtype):
    same(dtype, "linear_weight_grad", normal(300, 264), normal(300, 257))


def test_what_is_padded():
    """The two copies of y and of the result are launches; aligned and small products have none."""
    aligned = same("float16", "matmul", normal(256, 264), normal(264, 256))
    assert same("float16", "matmul", normal(256, 264), normal(264, 257)) == aligned + 2
    assert same("float16", "matmul", normal(25, 264), normal(264, 257)) == aligned
    _core.set_flag("allow_tf32", "0")
    assert same("float32", "matmul", normal(256, 264), normal(264, 257)) == aligned
