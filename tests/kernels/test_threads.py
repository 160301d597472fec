"""Results have the same bits however many threads share the work: every op of the table, its samples grown along each of
their lengths until several threads share them. What LIBRARIES lists may differ, unless FLAGS_deterministic is set."""
import numpy as np
import pytest

import matrix
import runner
from conftest import BUILD
from proa import _core

FORMULA = 2 * 65536 + 19  # two threads share them even where an element is a byte in and a byte out; no whole number of vectors
MANY = 3 * 16384 + 19  # the same of whole elements, which three threads share
CAP = 2 ** 27  # bytes that a grown sample may take: outer products are not grown
SAMPLES = {"conv": 1}  # of each op, by family: 3 where it is not given
DTYPES = ("F32", "F64")
COUNTS = (1, 2, 3)
TABLE = [op for op in matrix.load_table(BUILD) if not isinstance(op["skip"], str)]
# oneDNN plans convolutions and products by thread; LAPACK's steps on large matrices are cut by OpenBLAS's team.
LIBRARIES = {"conv1d", "conv2d", "conv3d", "conv1d_transpose", "conv2d_transpose", "conv3d_transpose", "conv2d_fused",
             "conv2d_grad_input", "conv3d_grad_input", "conv2d_grad_filter", "conv3d_grad_filter", "matmul", "bmm", "linear",
             "linear_fused", "linear_weight_grad", "matmul_swapped", "triangular_solve", "solve", "cholesky", "inverse", "matrix_power",
             "lu", "qr", "svd", "matrix_rank", "lstsq", "eigh", "eigvalsh", "eig", "eigvals"}
# Ops that no grown sample is valid for: sizes stand in their attributes or in lists of offsets.
SMALL = {
    "affine_grid", "arange", "array_create", "as_strided_grad", "assign_value", "box_clip",
    "box_decoder_and_assign", "broadcast_to", "collect_fpn_proposals",
    "conv3d_grad_filter", "conv3d_grad_input", "diag", "diagonal_grad", "distribute_fpn_proposals", "eye", "full", "gaussian",
    "gen_ring_id", "interpolate_grad", "linspace", "masked_select_grad", "max_pool3d_with_index_grad", "pad3d_grad",
    "pool3d_grad", "randint", "randperm", "repeat_interleave_grad", "roi_pool_grad", "sequence_enumerate", "sequence_pool_grad",
    "sequence_reshape_grad", "sequence_scatter", "sequence_scatter_grad", "sequence_slice", "sequence_slice_grad",
    "sequence_softmax", "sequence_softmax_grad", "strided_slice_grad", "tile_grad", "tril_indices", "triu_indices",
    "truncated_gaussian_random", "uniform"}


@pytest.fixture(autouse=True)
def settings():
    _core.set_flag("memory_cap", str(CAP))
    yield
    for flag in ("num_threads", "memory_cap", "deterministic"):
        _core.set_flag(flag, "0")


def with_threads(case, n):
    _core.set_flag("num_threads", str(n))
    return runner.call(case)


def map_specs(op, sample, change):
    """The sample with change(spec) in place of its tensors' specs, those of its forward op included."""
    made = dict(sample)
    for f in matrix.tensor_fields(op):
        spec = sample.get(f["name"])
        if spec is not None:
            made[f["name"]] = [change(s) for s in spec] if f["kind"] == "TENSORS" else change(spec)
    if isinstance(sample.get("forward"), dict):
        made["forward"] = map_specs(matrix.OPS[sample["forward"]["op"]], sample["forward"], change)
    return made


def shape_of(spec):
    if isinstance(spec, list):
        return spec
    if not isinstance(spec, dict) or "from" in spec:
        return None
    return list(np.shape(spec["values"])) if "values" in spec else spec["shape"]


def grown(spec, length, factor):
    """The spec with dims of that length made longer."""
    shape = shape_of(spec)
    if shape is None or length not in shape:
        return spec
    shape = [n * factor if n == length else n for n in shape]
    if isinstance(spec, list):
        return shape
    return {**spec, "values": np.resize(spec["values"], shape)} if "values" in spec else {**spec, "shape": shape}


def large_samples(op, sample):
    """The sample with each of its lengths in turn grown until several threads share the largest tensor."""
    enough = FORMULA if op["formula"] else MANY
    shapes = []
    map_specs(op, sample, lambda spec: shapes.append(shape_of(spec)) or spec)
    shapes = [shape for shape in shapes if shape]
    for length in sorted({n for shape in shapes for n in shape if n > 0}):
        for factor in (2 ** i for i in range(1, 18)):
            if max(np.prod([n * factor if n == length else n for n in shape], dtype=float) for shape in shapes) >= enough:
                yield length, map_specs(op, sample, lambda spec: grown(spec, length, factor))
                break


def large_cases(op):
    for index, sample in enumerate(op["samples"][:SAMPLES.get(op["family"], 3)]):
        for length, large in large_samples(op, sample):
            kinds = matrix.case_dtypes(op, large)
            for dtype in [kind for kind in kinds if kind in DTYPES] or kinds[:1]:
                try:
                    yield f"{op['name']}/{index}/{length}/{dtype}", runner.resolve(matrix.build(op, index, large, dtype))
                except Exception:
                    continue


def flat(values):
    for value in values if isinstance(values, list) else [values]:
        if isinstance(value, list):
            yield from flat(value)
        elif value is not None:
            yield value.tobytes()


def differing(op):
    """(cases that ran, those whose bits depend on the number of threads)."""
    ran, found = 0, []
    for name, case in large_cases(op):
        try:
            first, *others = [list(flat(with_threads(case, n))) for n in COUNTS]
        except Exception:
            continue
        ran += 1
        found += [f"{name}: {n} threads" for n, other in zip(COUNTS[1:], others) if other != first]
    return ran, found


@pytest.mark.parametrize("op", TABLE, ids=lambda op: op["name"])
def test_threads_change_no_bit(op):
    ran, found = differing(op)
    assert bool(ran) != (op["name"] in SMALL), "no sample could be grown" if not ran else "SMALL has a line too many"
    assert not found or op["name"] in LIBRARIES, "\n".join(found[:8])


@pytest.mark.parametrize("op", [op for op in TABLE if op["name"] in LIBRARIES], ids=lambda op: op["name"])
def test_deterministic_changes_no_bit(op):
    _core.set_flag("deterministic", "1")
    assert not differing(op)[1]


def random(*shape, dtype="float64"):
    return _core.from_numpy(np.random.RandomState(0).standard_normal(shape).astype(dtype))


def same_bits(call, *tensors):
    """Whether results and gradients have the same bits at every number of threads."""
    seen = set()
    for n in COUNTS:
        _core.set_flag("num_threads", str(n))
        for t in tensors:
            t.stop_gradient = False
            t.clear_gradient()
        out = call(*tensors)
        _core.sum(_core.multiply(out, out)).backward()
        seen.add(b"".join([out.numpy().tobytes(), *(t.grad.numpy().tobytes() for t in tensors)]))
    return len(seen) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("x,y", [((333, 517), (517, 259)), ((17, 101, 67), (17, 67, 73)), ((1777, 1333), (1333,)),
                                 ((48, 20011), (20011, 40)), ((20011, 48), (48, 40)), ((5, 1201), (1201, 3001))], ids=str)
def test_products(x, y, dtype):
    _core.set_flag("deterministic", "1" if dtype == "float32" else "0")  # oneDNN's, those of float32
    assert same_bits(_core.matmul, random(*x, dtype=dtype), random(*y, dtype=dtype))


@pytest.mark.parametrize("x,filters", [((16, 64, 28, 28), (64, 64, 3, 3)), ((4, 3, 65, 65), (32, 3, 7, 7)),
                                       ((8, 96, 14, 14), (40, 96, 1, 1))], ids=str)
def test_deterministic_convolutions(x, filters):
    _core.set_flag("deterministic", "1")
    assert same_bits(_core.conv2d, random(*x, dtype="float32"), random(*filters, dtype="float32"))


@pytest.mark.parametrize("name", ["inverse", "cholesky", "svd", "qr", "eigh"])
@pytest.mark.parametrize("shape", [(301, 301), (3, 201, 201), (6, 64, 64)], ids=str)
def test_deterministic_linear_algebra(name, shape):
    _core.set_flag("deterministic", "1")
    a = np.random.RandomState(1).standard_normal(shape)
    x = _core.from_numpy(a @ np.swapaxes(a, -1, -2) / shape[-1] + np.eye(shape[-1]))
    results = set()
    for n in COUNTS:
        _core.set_flag("num_threads", str(n))
        made = getattr(_core, name)(x)
        results.add(b"".join(one.numpy().tobytes() for one in (made if isinstance(made, (tuple, list)) else [made])))
    assert len(results) == 1
