"""CUDA kernels where the op table's samples are too small: more than one block, tile or pass; and values that they refuse.

On gpu:0, emulated unless PROA_GPU says that there is one (test_devices.py).
"""
import math

import numpy as np
import pytest

from proa import _core
from test_devices import on, plugin_of

PLUGIN = plugin_of("gpu:0")
pytestmark = pytest.mark.skipif(PLUGIN is None, reason="gpu:0: its plug-in is not built here")
RNG = np.random.RandomState(3)


@pytest.fixture(autouse=True)
def plugin():
    _core.load_devices(str(PLUGIN))


def both(op, *arguments, **attrs):
    """The outputs of an op on the GPU and on the CPU, as lists of arrays; arrays among the arguments become tensors."""
    def outputs(name):
        given = [_core.to_device(_core.from_numpy(a), name) if isinstance(a, np.ndarray) else a for a in arguments]
        with on(name):
            result = getattr(_core, op)(*given, **attrs)
        return [t.numpy() for t in (result if isinstance(result, (list, tuple)) else [result])]
    return outputs("gpu:0"), outputs("cpu")


def same(op, *arguments, rtol=0, **attrs):
    got, want = both(op, *arguments, **attrs)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if rtol:
            np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(g, w)


LONG = [np.float32, np.float64, np.float16, np.int8, np.int32, np.int64]


def long_lines(dtype, *shape):
    x = RNG.standard_normal(shape) * 50
    if np.dtype(dtype).kind == "f":
        x.reshape(-1)[::97] = np.nan
        x.reshape(-1)[::31] = -0.0
    return np.nan_to_num(x).astype(dtype) if np.dtype(dtype).kind == "i" else x.astype(dtype)


@pytest.mark.parametrize("dtype", LONG)
def test_sort_of_long_lines(dtype):
    same("sort", long_lines(dtype, 2, 4500))
    same("argsort", long_lines(dtype, 2500, 2), axis=0, descending=True)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_few_of_long_lines(dtype):
    x = long_lines(dtype, 2, 5000)
    for k, largest in (3, True), (1000, False), (1500, True):
        same("topk", x, k=k, largest=largest)
    same("kthvalue", x, k=700)
    same("mode", x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "uint8"])
@pytest.mark.parametrize("n", [8, 1003, 70000])
def test_elementwise_over_packs(n, dtype):
    """Eight elements at once and what is left over; of halves, too, and from one dtype to another."""
    a, b = (RNG.standard_normal(n) * 20).astype(np.float32), RNG.randint(1, 40, n).astype(np.float32)

    def outputs(name):
        x, y = (_core.to_device(_core.cast(_core.from_numpy(np.abs(v)), dtype), name) for v in (a, b))
        with on(name):
            results = [_core.add(x, y), _core.multiply(x, x), _core.scale(x, 3.0), _core.less_than(x, y), _core.where(_core.less_than(x, y), x, y)]
            results += [_core.cast(x, to) for to in ("float32", "bfloat16", "float16", "float64", "int64")]
        return [_core.cast(t, "float64").numpy() for t in results]
    for got, want in zip(outputs("gpu:0"), outputs("cpu")):
        np.testing.assert_array_equal(got, want)


def moved(x, how):
    """x after `how`: a permutation of its dims, or slices of them."""
    if isinstance(how[0], int):
        return _core.transpose(x, perm=list(how)), lambda a: a.transpose(how)
    axes = list(range(len(how)))
    starts, ends = [s.start or 0 for s in how], [s.stop or 10**6 for s in how]
    return _core.slice(x, axes=axes, starts=starts, ends=ends), lambda a: a[how]


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64, np.complex128])
@pytest.mark.parametrize("shape, how", [
    ((2, 33, 3, 4, 16), (2, 0, 3, 1, 4)),                       # runs of 16 elements, four dims
    ((7, 65, 130), (0, 2, 1)), ((70, 3, 40), (2, 1, 0)),        # tiles that are not whole
    ((5, 3, 67), (0, 2, 1)), ((2, 3, 4, 5, 6), (4, 2, 0, 3, 1)),  # too short for tiles
    ((64, 128), (1, 0)), ((1, 40, 1, 50), (3, 2, 1, 0)),
    ((9, 48), (slice(None), slice(8, 40))), ((9, 48), (slice(1, 8), slice(1, 47))), ((4, 6, 5), (slice(1, 3), slice(2, 5), slice(1, 2))),
])
def test_strided_copies(shape, how, dtype):
    x = (RNG.standard_normal(shape) * 100).astype(dtype)
    view, wanted = moved(_core.to_device(_core.from_numpy(x), "gpu:0"), how)
    np.testing.assert_array_equal(_core.to_device(view, "cpu").numpy(), wanted(x))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int32"])
def test_elementwise_over_views_and_broadcasts(dtype):
    """Rows of whole groups of four, and others; operands that repeat along the last dim, along others, along all."""
    shapes = [((6, 5, 16), (16,)), ((6, 5, 16), (6, 1, 1)), ((6, 5, 16), ()), ((6, 5, 15), (5, 1)), ((2052,), ()), ((3,), ()), ((), ()), ((1, 4), (3, 1))]
    cases = [(RNG.randint(1, 50, a).astype(np.float32), RNG.randint(1, 50, b).astype(np.float32)) for a, b in shapes]

    def outputs(name):
        results = []
        with on(name):
            for a, b in cases:
                x, y = (_core.to_device(_core.cast(_core.from_numpy(np.asarray(v)), dtype), name) for v in (a, b))
                results += [_core.add(x, y), _core.subtract(y, x), _core.less_than(x, y)]
                if x.ndim == 3:
                    turned = _core.transpose(x, perm=[1, 0, 2])
                    tail = _core.slice(x, axes=[2], starts=[1], ends=[13])
                    results += [_core.scale(turned, 3.0), _core.multiply(turned, turned), _core.scale(tail, 2.0), _core.cast(tail, "float32")]
        return [_core.cast(t, "float64").numpy() for t in results]
    for got, want in zip(outputs("gpu:0"), outputs("cpu")):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("n", [1, 7, 256, 1023, 70001])
def test_dropout_draws_what_the_cpu_draws(n, dtype):
    data = RNG.standard_normal(n + 1).astype(np.float32)

    def outputs(name):
        results = []
        with on(name):
            whole = _core.to_device(_core.cast(_core.from_numpy(data), dtype), name)
            for first in 0, 1:  # aligned and not
                x = _core.slice(whole, axes=[0], starts=[first], ends=[first + n])
                out, mask = _core.dropout(x, p=0.3, fix_seed=True, seed=11)
                results += [out, mask, _core.dropout_grad(mask, x, p=0.3)]
        return [_core.cast(t, "float64").numpy() for t in results]
    for got, want in zip(outputs("gpu:0"), outputs("cpu")):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape, axis", [((120000,), []), ((3, 40001), [1]), ((70, 1000), [1]), ((9000, 40), [0]), ((600, 7, 9), [0, 2]),
                                         ((40, 300, 33), [1]), ((2, 5000, 3), [0, 1])])
def test_long_reductions(shape, axis):
    """Along contiguous terms and across them, in slices, and where neither lies side by side."""
    x = RNG.standard_normal(shape).astype(np.float32)
    for op in "sum", "mean", "logsumexp", "variance":
        same(op, x, axis=axis, rtol=1e-5)
    same("prod", (1 + x / 1000).astype(np.float32), axis=axis, rtol=1e-4)
    same("sum", x.astype(np.float64), axis=axis, rtol=1e-12)
    same("sum", (x * 9).astype(np.int32), axis=axis)
    same("any", x > 4, axis=axis)
    half = x.astype(np.float16)
    same("mean", half, axis=axis, rtol=2e-3)
    half.reshape(-1)[half.size // 3] = np.nan
    same("max", half, axis=axis)
    same("min", x, axis=axis)


def test_long_sums_are_cut_into_slices():
    def launches(n):
        x = _core.to_device(_core.from_numpy(np.ones(n, np.float32)), "gpu:0")
        before = _core.device_property("gpu:0", "launches")
        assert _core.sum(x).item() == n
        return _core.device_property("gpu:0", "launches") - before
    assert (launches(8000), launches(40000)) == (1, 2)  # the second folds them


def test_sums_by_row_over_several_parts():
    index = np.where(RNG.rand(700) < 0.5, 3, RNG.randint(0, 40, 700)).astype(np.int64)  # one row gets hundreds of terms
    value = RNG.standard_normal((700, 3)).astype(np.float32)
    same("index_add", np.ones((40, 3), np.float32), index, 0, value, rtol=1e-5)
    same("scatter", np.zeros((40, 3), np.float32), index, value)
    same("scatter", np.zeros((40, 3), np.float32), index, value, overwrite=False, rtol=1e-5)
    same("scatter_nd_add", np.zeros((40, 3), np.float32), index[:, None], value, rtol=1e-5)
    for mode in "assign", "add", "mean", "amax":
        same("put_along_axis", np.zeros((40, 3), np.float32), np.repeat(index[:, None], 3, 1), value, axis=0,
             reduce=mode, rtol=1e-5)


def test_selection_over_several_tiles():
    x = RNG.standard_normal((70, 90)).astype(np.float32)
    same("nonzero", (x > 0.5).astype(np.float32))
    same("masked_select", x, x > 0)
    same("repeat_interleave", x, RNG.randint(0, 4, 70).astype(np.int64), axis=0)


def test_unique_of_many():
    flags = dict(return_index=True, return_inverse=True, return_counts=True)
    same("unique", RNG.randint(0, 900, 6000).astype(np.int64), **flags)
    same("unique", RNG.randint(0, 3, (500, 4)).astype(np.int32), axis=[0], **flags)
    same("unique_consecutive", RNG.randint(0, 2, 5000).astype(np.int8), return_inverse=True, return_counts=True)


@pytest.mark.parametrize("op, arguments, attrs", [
    ("gather", [np.ones((4, 2), np.float32), np.int64([0, 4])], {}),
    ("gather_nd", [np.ones((4, 2), np.float32), np.int64([[0, 2]])], {}),
    ("index_select", [np.ones((4, 2), np.float32), np.int64([-1])], {}),
    ("scatter_nd_add", [np.ones((4, 2), np.float32), np.int64([[7]]), np.ones((1, 2), np.float32)], {}),
    ("one_hot", [np.int64([5])], {"num_classes": 4}),
])
def test_refused_indices_come_out_when_waited_for(op, arguments, attrs):
    given = [_core.to_device(_core.from_numpy(a), "gpu:0") for a in arguments]
    out = getattr(_core, op)(*given, **attrs)
    with pytest.raises((IndexError, ValueError), match=op):
        out.numpy()
    out.numpy()  # said once


@pytest.mark.parametrize("shape, axis", [((3, 9000), 1), ((40000,), 0), ((5, 70, 3), 1), ((70, 4100), 0)])
def test_scans_of_long_lines(shape, axis):
    x = RNG.standard_normal(shape).astype(np.float32)
    same("cumsum", x, axis=axis, rtol=1e-4)
    same("cumsum", x, axis=axis, reverse=True, exclusive=True, rtol=1e-4)
    same("cumprod", (1 + x / 1000).astype(np.float32), axis, rtol=1e-4)
    same("logcumsumexp", x, axis=axis, rtol=1e-5)
    whole = (x * 3).astype(np.int32)
    same("cumsum", whole, axis=axis)
    same("cummax", whole, axis=axis)
    x.reshape(-1)[len(x) // 2] = np.nan
    same("cummin", x, axis=axis)


@pytest.mark.parametrize("shape, axis", [((3, 40000), 1), ((40000,), None), ((5, 70, 3), 1), ((70, 4100), 0)])
def test_places_of_extremes_of_long_lines(shape, axis):
    x = (RNG.standard_normal(shape) * 9).astype(np.int64)  # with ties
    attrs = {} if axis is None else {"axis": axis}
    same("argmax", x, **attrs)
    y = x.astype(np.float32)
    y.reshape(-1)[[x.size // 3, x.size // 2]] = np.nan
    same("argmin", y, **attrs)


def test_counts_over_several_blocks():
    x = RNG.randint(0, 50, 3000).astype(np.int64)
    same("bincount", x, RNG.standard_normal(3000).astype(np.float32), rtol=1e-4)
    same("histogram", RNG.standard_normal(3000).astype(np.float32), bins=30)
    same("histogram", x, bins=3000, min=0, max=60)


def test_factors_of_many_and_of_larger_matrices():
    x = RNG.standard_normal((600, 3, 3)) + 3 * np.eye(3)
    y = RNG.standard_normal((600, 3, 2))
    for op, arguments in (("inverse", [x]), ("det", [x]), ("slogdet", [x]), ("solve", [x, y]), ("triangular_solve", [x, y])):
        same(op, *arguments, rtol=1e-9)
    large = RNG.standard_normal((2, 70, 70)) + 9 * np.eye(70)
    definite = large @ large.transpose(0, 2, 1)
    same("inverse", large, rtol=1e-6)
    same("cholesky", definite, rtol=1e-9)
    same("cholesky_solve", RNG.standard_normal((70, 1)), np.linalg.cholesky(definite), rtol=1e-6)
    same("matrix_power", large / 20, n=-3, rtol=1e-6)


def test_matrices_that_have_no_factors():
    x = np.stack([np.eye(3), np.ones((3, 3))]).astype(np.float32)
    there = _core.to_device(_core.from_numpy(x), "gpu:0")
    with pytest.raises(ValueError, match="inverse: x is singular: matrix 1, row 1"):
        _core.inverse(there)
    with pytest.raises(ValueError, match="cholesky: x is not positive definite: matrix 1, row 1"):
        _core.cholesky(there)
    same("inverse", np.eye(3, dtype=np.float32))


def test_masks_of_sequences():
    x = RNG.randint(0, 90, (7, 11))
    same("sequence_mask", x)
    same("sequence_mask", x.astype(np.int32), maxlen=40)


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype, fraction, least", [("float16", 10, -24), ("bfloat16", 7, -133)])
def test_gelu_of_every_half(dtype, fraction, least, approximate):
    """The halves' formula adds at most a sixteenth to half a unit of rounding; gradients cancel near -0.75, float32 ends at 1e-38."""
    bits = np.arange(65536, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        values = (bits.view(np.float16) if dtype == "float16" else (bits.astype(np.uint32) << 16).view(np.float32)).astype(np.float64)
    x = values[np.isfinite(values) & (np.abs(values) < 12) & (np.abs(values) > 1e-30)]
    slope = 0.7978845608028654
    if approximate:
        s, inner = 1 / (1 + np.exp(-2 * slope * (x + 0.044715 * x**3))), 2 * slope * (1 + 0.134145 * x**2)
        wanted, gradient = x * s, s + x * s * (1 - s) * inner
    else:
        phi = np.vectorize(math.erfc)(-x / math.sqrt(2)) / 2
        wanted, gradient = x * phi, phi + x * np.exp(-x * x / 2) * slope / 2
    with on("gpu:0"):
        t = _core.cast(_core.to_device(_core.from_numpy(x.astype(np.float32)), "gpu:0"), dtype)
        ones = _core.cast(_core.to_device(_core.from_numpy(np.ones_like(x, np.float32)), "gpu:0"), dtype)
        results = [_core.gelu(t, approximate=approximate), _core.gelu_grad(t, ones, approximate=approximate)]
    for got, exact, slack in zip(results, (wanted, gradient), (1e-36, 1e-5)):
        unit = np.exp2(np.maximum(np.floor(np.log2(np.abs(exact))) - fraction, least))
        assert np.all(np.abs(_core.cast(got, "float64").numpy() - exact) <= 0.5625 * unit + slack)
