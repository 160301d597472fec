"""The table's matrix on devices: every op, sample and dtype there, against the CPU.

Devices: `example:0` (devices/example; ops without a kernel go through FLAGS_device_fallback, so that this tests the core
for devices), and `gpu:0` where the CUDA plug-in is built: on a GPU where there is one, otherwise *emulated* on the CPU
(devices/cuda/emulate), which says that kernels compute the right thing, and nothing of a GPU. What the GPU has no kernel
for stands in tests/devices/gaps.txt; a gap that has come to pass fails until its line is removed.
"""
import contextlib
import os

import numpy as np
import pytest

import matrix
import runner
from conftest import BUILD, ROOT
from proa import _core

TABLE = matrix.load_table(BUILD)
NO_KERNEL = "has no kernel on"


def plugin_of(name):
    """The plug-in's file for a device, None if it is not built; PROA_GPU says that a real GPU is to be used."""
    file = {"example:0": "libproa_example.so",
            "gpu:0": "libproa_cuda.so" if os.environ.get("PROA_GPU") else "libproa_cuda_emulated.so"}[name]
    path = BUILD / "devices" / file
    return path if path.exists() else None


def read_gaps():
    path = ROOT / "tests/devices/gaps.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return {tuple(line.split()[:2]) for line in lines if line.strip() and not line.startswith("#")}


GAPS = read_gaps()


@pytest.fixture(params=["example:0", "gpu:0"])
def device(request):
    path = plugin_of(request.param)
    if path is None:
        pytest.skip(f"{request.param}: its plug-in is not built here")
    _core.load_devices(str(path))
    _core.set_flag("device_fallback", "1" if request.param == "example:0" else "0")
    yield request.param
    _core.set_flag("device_fallback", "0")


@contextlib.contextmanager
def on(name):
    before = _core.get_device()
    _core.set_device(name)
    try:
        yield
    finally:
        _core.set_device(before)


def moved(values, name):
    if isinstance(values, dict):
        return {k: moved(v, name) for k, v in values.items()}
    if isinstance(values, list):
        return [moved(v, name) for v in values]
    return _core.to_device(values, name) if isinstance(values, _core.Tensor) else values


def run(case, values, name):
    with on(name):
        _core.seed(1)
        given = {k: v for k, v in moved(values, name).items() if v is not None}
        result = getattr(_core, case.op["name"])(**given, **case.attrs)
        return runner.outputs(case, given, result)


def flatten(values):
    out = []
    for v in values:
        out += flatten(v) if isinstance(v, list) else [] if v is None else [v]
    return out


def forward(case, name, layout=np.ascontiguousarray):
    outs = run(case, runner.tensors(case, layout), name)
    wrong = [str(t.place) for t in flatten(outs) if name != "cpu" and str(t.place) != f"Place({name})"]
    assert not wrong, f"an output is on {wrong[0]}"
    return runner.to_numpy(outs)


def gradients(case, name):
    """Gradients of a weighted sum of the floating outputs by the floating inputs."""
    values, leaves = moved(runner.tensors(case), name), []
    for f in matrix.tensor_fields(case.op):
        if "NO_GRAD" in f["flags"] or f["name"] in case.derived:
            continue
        for t in flatten([values.get(f["name"])]):
            if str(t.dtype).split(".")[-1] in ("float32", "float64", "float16", "bfloat16"):
                t.stop_gradient = False
                leaves.append(t)
    seeds, roots, rng = [], [], np.random.RandomState(7)
    fields = [f for f in case.op["fields"] if f["role"] == "OUT"]
    for f, out in zip(fields, run(case, values, name)):
        for t in flatten([out]):
            if {"NO_GRAD", "MUTATED"} & set(f["flags"]) or t.stop_gradient:
                continue
            weight = _core.cast(_core.from_numpy(np.asarray(rng.standard_normal(tuple(t.shape)))), t.dtype)
            roots.append(t)
            seeds.append(_core.to_device(weight, name))
    if not roots or not leaves:
        return []
    grads = _core.grad(roots, leaves, seeds, allow_unused=True)
    return runner.to_numpy([_core.rows_to_dense(g) if g is not None and _core.is_rows(g) else g for g in grads])


def captured(case, name):
    values = moved(runner.tensors(case), name)
    flat = flatten(values.values())

    def fn(*symbols):
        it = iter(symbols)
        given = {k: [next(it) if isinstance(x, _core.Tensor) else x for x in v] if isinstance(v, list)
                 else next(it) if isinstance(v, _core.Tensor) else v for k, v in values.items() if v is not None}
        result = getattr(_core, case.op["name"])(**given, **case.attrs)
        return flatten(runner.outputs(case, given, result))
    program = _core.capture(fn, [(f"x{i}", list(t.shape), t.dtype) for i, t in enumerate(flat)])
    with on(name):
        return runner.to_numpy(program.run(flat))


def attempt(case, body):
    """(problem or None, whether it is a missing kernel)"""
    try:
        problem = body()
    except NotImplementedError as e:
        if NO_KERNEL in str(e):
            return f"{case.id}: {e}", True
        problem = f"NotImplementedError: {e}"
    except Exception as e:
        problem = f"{type(e).__name__}: {e}"
    return (f"{case.id}: {problem}" if problem else None), False


def compare(case, mode, name, *arguments):
    try:
        want = mode(case, "cpu", *arguments)
    except Exception:
        return None
    got = mode(case, name, *arguments)
    if mode is forward:
        got, want = (matrix.comparable(case.op, outs) for outs in (got, want))
    return runner.difference(got, want, 2 * case.tolerance())


def check(op, name, mode, *arguments):
    """Runs a mode over an op's cases; the GPU's gaps are those of gaps.txt, no more and no less."""
    problems, gaps, tried = [], set(), 0
    for case in map(runner.resolve, matrix.cases(op)):
        problem, is_gap = attempt(case, lambda: compare(case, mode, name, *arguments))
        tried += 1
        if is_gap and name == "gpu:0":
            gaps.add((op["name"], case.dtype or "-"))
            missing = problem.split(": ")[1]  # gradients: perhaps another op's kernel
            if (op["name"], case.dtype or "-") in GAPS or missing != op["name"] and any(g[0] == missing for g in GAPS):
                continue
        if problem:
            problems.append(problem)
    assert not problems, "\n".join(problems[:8]) + (f"\n… {len(problems)} problems" if len(problems) > 8 else "")
    return gaps


def each(ops):
    return pytest.mark.parametrize("op", ops, ids=lambda op: op["name"])


def has_tensors(op):
    return any(True for sample in op["samples"] for _ in matrix.sample_specs(op, sample))


RUNNABLE = [op for op in TABLE if not isinstance(op["skip"], str)]
DIFFERENTIABLE = [op for op in RUNNABLE if op["vjp"] not in (None, "none", "refused")]


@each(RUNNABLE)
def test_forward(op, device):
    gaps = check(op, device, forward)
    if device == "gpu:0":
        stale = {g for g in GAPS if g[0] == op["name"]} - gaps
        assert not stale, f"tests/devices/gaps.txt has {sorted(stale)}, which pass now: remove the lines"
        if gaps:
            pytest.skip(f"no kernel for {', '.join(sorted(d for _, d in gaps))}")


@each([op for op in RUNNABLE if has_tensors(op) and "strided" not in op["refuses"]])
def test_strided(op, device):
    check(op, device, forward, runner.strided)


@each(DIFFERENTIABLE)
def test_gradient(op, device):
    check(op, device, gradients)


@each([op for op in RUNNABLE if has_tensors(op) and "RANDOM" not in op["flags"]])
def test_captured(op, device):
    check(op, device, captured)
