"""Every op of the table in Paddle's form, run by real Paddle: the table's samples are captured, saved, and run by Paddle 2.6.2
in another process, gradient ops included; axes are counted from either end. So are the programs that append_backward makes of
them, in which a gradient op stands behind its forward op. What Paddle cannot run is a line of tests/ops/wire.txt with its
reason; one that is no longer true fails."""
import pickle

import numpy as np
import pytest

import matrix
import oracle
import runner
from conftest import ROOT, once
from proa import _core
from test_ops import (CAPTURABLE, DIFFERENTIABLE, PRECISION, attempt, captured, chosen, flatten, float_inputs, gradient_cases, weighted)

WRITTEN = [op for op in CAPTURABLE if op["wires"] and "saved" not in (op["skip"] or {})]
AXES = ("axis", "axes", "dim", "dims", "axis1", "axis2", "dim1", "dim2", "start_axis", "stop_axis", "begin_norm_axis", "perm",
        "decrease_axis", "decrease_axes")
GAPS = {}
for line in (ROOT / "tests/ops/wire.txt").read_text().splitlines():
    if line.strip() and not line.startswith("#"):
        case_id, reason = line.split(None, 1)
        GAPS[case_id] = reason


# ---- the cases -------------------------------------------------------------------------------

def kept(case):
    """Mask of the outputs that are compared: Paddle fetches nothing that is empty."""
    return [v.size > 0 for v in flatten(runner.call(case))]


def turned(axis, ndim):
    """An axis, or a list of them, counted from the other end."""
    if isinstance(axis, list):
        return [turned(a, ndim) for a in axis]
    return axis if not isinstance(axis, int) else axis - ndim if axis >= 0 else axis + ndim


def from_the_other_end(case):
    """The case with its axes counted from the other end, if it has such and is then the same; else None."""
    fields = {f["name"]: f for f in case.op["fields"] if f["role"] == "ATTR" and f["name"] in AXES}
    given = {name: case.attrs.get(name, matrix.default_value(f)) for name, f in fields.items()}
    first = next(iter(matrix.flat(case.inputs)), None)
    other = {name: turned(v, first.values.ndim) for name, v in given.items()} if first else given
    if other == given or case.attrs.get("flatten"):
        return None
    made = matrix.Case(case.op, case.index, case.dtype, case.inputs, {**case.attrs, **other}, case.sample)
    made.id += "/other end"
    try:
        return made if runner.difference(flatten(runner.call(made)), flatten(runner.call(case)), 0) is None else None
    except Exception:
        return None


def exported_cases(op):
    """Every sample in one dtype, and from the other end."""
    for index, sample in enumerate(op["samples"]):
        if not sample.get("oracle", True):
            continue
        dtypes = matrix.case_dtypes(op, sample)
        dtype = next((d for d in ("F32", "C64", "I64") if d in dtypes), dtypes[0])
        case = runner.resolve(matrix.build(op, index, sample, dtype))
        if not any(kept(case)):
            continue
        yield case
        other = from_the_other_end(case)
        if other is not None:
            yield other


# ---- programs with a backward ----------------------------------------------------------------

TRAINED = [op for op in WRITTEN if op in DIFFERENTIABLE and not op["name"].endswith("_grad") and op["name"] not in GAPS]


def trained_cases(op):
    for case in gradient_cases(op):
        if case.sample.get("oracle", True) and not case.derived and any(float_inputs(case)):
            yield case


def trained(case):
    """The program that computes gradients of a weighted sum of the case's outputs, and its tensors; None if there are none."""
    values, flat, at = runner.tensors(case), [], {}
    if weighted(case, values) is None:
        return None
    for name, v in values.items():
        for i, t in enumerate(v if isinstance(v, list) else [v]):
            if isinstance(t, _core.Tensor):
                at[name, i if isinstance(v, list) else None] = len(flat)
                flat.append(t)

    def loss(*symbols):
        def placed(name, i, t):
            return symbols[at[name, i]] if isinstance(t, _core.Tensor) else t
        return [weighted(case, {name: [placed(name, i, t) for i, t in enumerate(v)] if isinstance(v, list) else placed(name, None, v)
                                for name, v in values.items()})]
    program = _core.capture(loss, [(f"x{i}", list(t.shape), t.dtype) for i, t in enumerate(flat)])
    inputs = [program.find(program.inputs[at[target]]) for target in float_inputs(case)]
    for x in inputs:
        program.stop_gradient(x, False)
    made = [g for g in program.gradients([program.find(name) for name in program.outputs], inputs) if g is not None]
    program.set_outputs(made)
    return (program, flat) if made else None


def gradients_problem(case, answer):
    if isinstance(answer, str):
        return answer
    program, given = trained(case)
    got = runner.to_numpy(program.run(given))
    # of kernels that compute float64 in float32, and of attributes, which files hold in float32
    return runner.difference(answer, got, max(1e-7, PRECISION.get((case.op["name"], case.dtype), 0)))


def lacks_kernel(case, answer):
    """Whether Paddle has no kernel of the dtype for the op itself: of complex numbers, or of float64."""
    return isinstance(answer, str) and any(
        f"registered in the {name} operator" in answer for wire in case.op["wires"] for name in (wire, wire + "_grad"))


# ---- Paddle's answers ------------------------------------------------------------------------

def saved(made, folder):
    program, given = made
    program.save(str(folder / "m"))
    params = folder / "m.pdiparams"
    parts = (folder / "m.pdmodel").read_bytes(), params.read_bytes() if params.exists() else b""
    for part in folder.iterdir():
        part.unlink()
    return (*parts, {f"x{i}": np.array(t.numpy()) for i, t in enumerate(given)})


def make(out, names):
    """Exports every case of the ops of these names and has Paddle run all of them."""
    folder = out.parent / (out.name + ".programs")
    folder.mkdir()
    programs, problems = [], {}

    def export(name, made):
        try:
            program = made()
            if program is not None:
                programs.append((name, *saved(program, folder)))
        except Exception as e:
            problems[name] = f"not exported: {type(e).__name__}: {e}"
    for op in (op for op in WRITTEN if op["name"] in names):
        for case in exported_cases(op):
            export(case.id, lambda: captured(case, runner.tensors(case), kept(case)))
    for op in (op for op in TRAINED if op["name"] in names):
        for case in trained_cases(op):
            export(case.id + "/gradient", lambda: trained(case))
    listed = out.with_suffix(".list")
    listed.write_bytes(pickle.dumps(programs))
    oracle.ask(ROOT / "tests/ops/run_wire.py", listed, out, timeout=900)
    out.write_bytes(pickle.dumps({**problems, **pickle.loads(out.read_bytes())}))


@pytest.fixture(scope="session")
def answers(request, tmp_path_factory):
    if not oracle.PYTHON.exists():
        pytest.skip("no oracle: tools/bootstrap --oracle")
    made = once(tmp_path_factory, "wire.pickle", lambda out: make(out, chosen(request, "test_wire", "test_backward")))
    return pickle.loads(made.read_bytes())


def widened(bits):
    """bfloat16, which Paddle fetches as its bits, in float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def problem_of(case, answer):
    if isinstance(answer, str):
        return answer
    got = [v for v in flatten(runner.call(case)) if v.size > 0]
    answer = [widened(a) if a.dtype == np.uint16 else a for a in answer]
    if len(answer) != len(got):
        return f"{len(answer)} outputs, expected {len(got)}"
    wrong = [f"{a.dtype}, expected {g.dtype}" for a, g in zip(answer, got) if a.dtype != g.dtype]
    allowed = max(2 * case.tolerance(), PRECISION.get((case.op["name"], case.dtype), 0))
    if wrong:
        return wrong[0]
    return runner.difference(*(matrix.comparable(case.op, outs) for outs in (got, answer)), allowed)


def verdict(tried):
    """tried: (problem, names under which wire.txt may have the case)."""
    problems, known = [], {}
    for problem, names in tried:
        gap = next((g for g in names if g in GAPS), None)
        if gap:
            known[gap] = known.get(gap) or problem
        elif problem:
            problems.append(problem)
    problems += [f"wire.txt has '{gap}', but real Paddle agrees now: remove the line" for gap, p in known.items()
                 if not p and not GAPS[gap].startswith("at times")]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("op", WRITTEN, ids=lambda op: op["name"])
def test_wire(op, answers):
    verdict((attempt(case, lambda: problem_of(case, answers[case.id])), (op["name"], f"{op['name']}/{case.index}"))
            for case in exported_cases(op))


@pytest.mark.parametrize("op", TRAINED, ids=lambda op: op["name"])
def test_backward(op, answers):
    verdict((attempt(case, lambda: gradients_problem(case, answers[case.id + "/gradient"])),
             (f"{op['name']}/gradient", f"{op['name']}/{case.index}/gradient", f"{op['name']}/{case.dtype}/gradient"))
            for case in trained_cases(op) if case.id + "/gradient" in answers and not lacks_kernel(case, answers[case.id + "/gradient"]))
