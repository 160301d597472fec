"""The table's matrix: every op, sample and dtype, in every mode. An op is tested because it is in the table.

Modes: forward (NumPy), oracle (real Paddle), strided, empty, gradient and second (finite differences in float64),
captured (program = eager), saved (saved and loaded = eager), backends (each against the portable one), refused (bad
input). What an op `refuses:` must fail with an error that names it, as saving an op with `paddle: none`. Known gaps stand in skips.txt, or as `skip:` in
the table, with their reason; one that has come to pass fails until its line is removed.
"""
import pathlib
import re

import numpy as np
import pytest

import matrix
import oracle
import runner
from conftest import BUILD, ROOT, once
from proa import _core

TABLE = matrix.load_table(BUILD)
DIFFERENTIABLE = [op for op in TABLE if op["vjp"] not in (None, "none", "refused") and not isinstance(op["skip"], str)]
NOT_TWICE = {op["name"] for op in TABLE if op["vjp"] == "refused"}
SKIPS = {}
for line in (pathlib.Path(__file__).parent / "skips.txt").read_text().splitlines():
    if line.strip() and not line.startswith("#"):
        name, mode, reason = line.split(None, 2)
        SKIPS[name, mode] = reason
PRECISION = {}  # what Paddle's own kernel may be off, where that is more than the dtype's rounding
for line in (ROOT / "tests/ops/precision.txt").read_text().splitlines():
    if line.strip() and not line.startswith("#"):
        name, dtype, tolerance, reason = line.split(None, 3)
        PRECISION[name, dtype] = float(tolerance)


def each(ops):
    return pytest.mark.parametrize("op", ops, ids=lambda op: op["name"])


def cases(op):
    return map(runner.resolve, matrix.cases(op))


def verdict(op, mode, problems, tried=1):
    """Turns a list of problems into the test's result, known gaps included."""
    reason = SKIPS.get((op["name"], mode)) or (op["skip"] if isinstance(op["skip"], dict) else {}).get(mode)
    if reason and problems:
        pytest.skip(reason)
    if reason:
        pytest.fail(f"skips.txt has '{op['name']} {mode}', but it passes now: remove the line")
    assert not problems, "\n".join(problems[:8]) + (f"\n… {len(problems)} problems" if len(problems) > 8 else "")
    assert tried, "no case was tried"


def check(case, got, expected, at_least=0.0):
    n = sum(f["role"] == "OUT" for f in case.op["fields"])
    want = runner.as_list(expected, n)
    if len(want) < n:
        want = want + [None] * (n - len(want))
    got, want = (matrix.comparable(case.op, outs) for outs in (got, want[:n]))
    return runner.difference(got, want, case.tolerance(at_least))


def attempt(case, body):
    """body's complaint about a case, or its exception, as one line; None if all is well."""
    try:
        problem = body()
    except Exception as e:
        problem = f"{type(e).__name__}: {e}"
    return f"{case.id}: {problem}" if problem else None


def not_refused(op, mode, body):
    """Problems of cases that the table says to be refused in this mode: each must fail and name the op."""
    problems = []
    for case in cases(op):
        try:
            body(case)
            problems.append(f"{case.id}: was taken; the table says that {mode} is refused")
        except Exception as e:
            if isinstance(e, SystemError) or op["name"] not in str(e):
                problems.append(f"{case.id}: the error does not name the op: {type(e).__name__}: {e}")
    return problems


@each(TABLE)
def test_forward(op):
    reference = getattr(matrix.family_module(op, "reference"), op["name"], None)
    if isinstance(op["skip"], str):
        pytest.skip(op["skip"])
    if reference is None:
        return verdict(op, "forward", ["reference.py has no function for it"])

    def body(case):
        with np.errstate(all="ignore"):
            return check(case, runner.call(case), reference(**case.arrays()))
    problems = [p for p in (attempt(c, lambda: body(c)) for c in cases(op)) if p]
    verdict(op, "forward", problems)


def chosen(request, *tests):
    """The names of the ops that these tests of the run are about: what real Paddle is to be asked."""
    return {item.callspec.params["op"]["name"] for item in request.session.items
            if getattr(item, "originalname", "") in tests and hasattr(item, "callspec")}


def ask_paddle(out, names):
    print(oracle.ask(ROOT / "tests/ops/run_matrix.py", BUILD, out, *sorted(names), timeout=900))


@pytest.fixture(scope="session")
def answers(request, tmp_path_factory):
    if not oracle.PYTHON.exists():
        pytest.skip("no oracle: tools/bootstrap --oracle")
    made = once(tmp_path_factory, "oracle.npz", lambda out: ask_paddle(out, chosen(request, "test_oracle")))
    return dict(np.load(made, allow_pickle=False))


def recorded(results, case):
    """What Paddle answered: an array, a list of them, or None if it refused."""
    if case.id in results:
        return results[case.id]

    def gather(prefix):
        if prefix in results:
            return results[prefix]
        found, i = [], 0
        while f"{prefix}#{i}" in results or f"{prefix}#{i}#0" in results:
            found.append(gather(f"{prefix}#{i}"))
            i += 1
        return found
    return gather(case.id) or None


@each([op for op in TABLE if op["oracle"] != "none" and not isinstance(op["skip"], str)])
def test_oracle(op, answers):
    if op["name"] not in answers["functions"]:
        return verdict(op, "oracle", ["oracle.py has no function for it, and the table does not say oracle: none"])
    problems, tried, imprecise = [], 0, {d for name, d in PRECISION if name == op["name"]}
    for case in cases(op):
        if not case.sample.get("oracle", True):
            continue
        expected = recorded(answers, case)
        if expected is None:
            if case.id + "!" not in answers:
                problems.append(f"{case.id}: Paddle returned nothing")
            continue
        tried += 1
        # Paddle's halves are rounded, too: what lies between two numbers may go either way
        rounded = {case.dtype, case.sample.get("dtype")} & {"F16", "BF16"}
        usual = 2.1 * case.tolerance() if rounded else 0
        allowed = PRECISION.get((op["name"], case.dtype), usual)
        problem = attempt(case, lambda: check(case, runner.call(case), expected, allowed))
        if problem:
            problems.append(problem)
        elif allowed > usual and attempt(case, lambda: check(case, runner.call(case), expected, usual)):
            imprecise.discard(case.dtype)
    if not tried:
        problems.append("Paddle refused every case: " + str(next((v for k, v in answers.items() if k.startswith(
            op["name"] + "/")), "")))
    problems += [f"precision.txt has '{op['name']} {d}', which is not needed: remove the line" for d in imprecise]
    verdict(op, "oracle", problems)


def has_tensors(op):
    return any(True for sample in op["samples"] for _ in matrix.sample_specs(op, sample))


@each([op for op in TABLE if has_tensors(op)])
def test_strided(op):
    def body(case):
        return runner.difference(runner.call(case, runner.strided), runner.call(case), case.tolerance())
    if "strided" in op["refuses"]:
        return verdict(op, "strided", not_refused(op, "strided", lambda case: runner.call(case, runner.strided)))
    problems = [p for p in (attempt(c, lambda: body(c)) for c in cases(op)) if p]
    verdict(op, "strided", problems)


@each([op for op in TABLE if has_tensors(op)])
def test_empty(op):
    reference = getattr(matrix.family_module(op, "reference"), op["name"], None)
    problems = []
    for index, sample in enumerate(op["samples"]):
        dtype = matrix.case_dtypes(op, sample)[0]
        case = runner.resolve(matrix.empty_case(op, index, sample, dtype))
        if case is None or reference is None:
            continue

        def body():
            with np.errstate(all="ignore"):
                try:
                    expected = reference(**case.arrays())
                except Exception:
                    expected = None
            try:
                got = runner.call(case)
            except Exception:
                if expected is None:
                    return None
                raise
            return None if expected is None else check(case, got, expected)
        problem = attempt(case, body)
        if problem:
            problems.append(problem)
    verdict(op, "empty", problems)


# ---- gradients -------------------------------------------------------------------------------

EPS = 1e-6
UNTRIED = "no output in double precision"


def float_inputs(case):
    """(field, index) of every float64 or complex128 input a gradient may flow to."""
    for f in matrix.tensor_fields(case.op):
        if "NO_GRAD" in f["flags"] or f["name"] not in case.inputs or f["name"] in case.derived:
            continue
        v = case.inputs[f["name"]]
        for i, item in enumerate(v if isinstance(v, list) else [v]):
            if item is not None and item.dtype in ("F64", "C128"):
                yield f["name"], i if isinstance(v, list) else None


def weighted(case, values):
    """A scalar of the op's floating outputs, with fixed random weights."""
    _core.seed(1)
    result = getattr(_core, case.op["name"])(**{k: v for k, v in values.items() if v is not None}, **case.attrs)
    flat = []
    outs = [f for f in case.op["fields"] if f["role"] == "OUT"]
    for f, out in zip(outs, runner.outputs(case, values, result)):
        if not {"NO_GRAD", "MUTATED"} & set(f["flags"]):
            flat += out if isinstance(out, list) else [out]
    flat = matrix.comparable(case.op, flat, _core)
    return projected(np.random.RandomState(7), [t for t in flat if t is not None])


def direction(rng, shape, is_complex):
    d = rng.standard_normal(shape)
    return np.asarray(d + 1j * rng.standard_normal(shape) if is_complex else d)


def projected(rng, tensors):
    """The real part of the sum of all float64 and complex128 tensors' elements, each times a random weight;
    None if there are no such tensors."""
    total = None
    for t in tensors:
        if str(t.dtype).split(".")[-1] not in ("float64", "complex128"):
            continue
        w = t  # where only a run knows how many weights there are to be
        if not t.is_symbolic or -1 not in t.declared_shape:
            w = _core.from_numpy(direction(rng, tuple(t.shape), str(t.dtype).endswith("complex128")))
        part = _core.sum(_core.multiply(t, w))
        part = _core.real(part) if str(t.dtype).endswith("complex128") else part
        total = part if total is None else _core.add(total, part)
    return total


def place(case, moves):
    """Tensors of the case, the inputs that `moves` names moved; and the list of those inputs."""
    values, leaves = runner.tensors(case), []
    for (name, i), delta in moves.items():
        array = case.inputs[name] if i is None else case.inputs[name][i]
        t = _core.from_numpy(np.array(array.values + delta, order="C"))
        t.stop_gradient = False
        leaves.append(t)
        if i is None:
            values[name] = t
        else:
            values[name][i] = t
    if case.derived:  # what comes from the forward op moves with its inputs
        values.update(runner.derive(case, values))
    return values, leaves


def slope_problem(value, may_be_flat, directions, what):
    """Compares value's recorded slope with central differences of it. `may_be_flat`: nothing recorded is a slope
    of 0, which the differences must show, too."""
    zero = {k: 0 * d for k, d in directions.items()}
    total, leaves = value(zero)
    if total is None:
        return UNTRIED
    if total.stop_gradient and not may_be_flat:
        return "no gradient flows"
    grads = [] if total.stop_gradient else _core.grad([total], leaves, allow_unused=True)
    grads = [_core.rows_to_dense(g) if g is not None and _core.is_rows(g) else g for g in grads]
    recorded_slope = sum(float((g.numpy().conj() * d).sum().real) for g, d in zip(grads, directions.values()) if g is not None)
    up = value({k: EPS * d for k, d in directions.items()})[0].item()
    down = value({k: -EPS * d for k, d in directions.items()})[0].item()
    numeric = (up - down) / (2 * EPS)
    noise = 4e-15 * (abs(up) + abs(down)) / EPS
    allowed = 2e-5 * max(1, abs(numeric)) + noise
    if abs(numeric - recorded_slope) <= allowed:
        return None
    return f"{what}: recorded {recorded_slope:.8g}, numeric {numeric:.8g}"


def gradient_problem(case, order):
    rng = np.random.RandomState(11)
    targets = list(float_inputs(case))
    arrays = {t: (case.inputs[t[0]] if t[1] is None else case.inputs[t[0]][t[1]]).values for t in targets}
    directions = {t: matrix.inside(case, t[0], direction(rng, a.shape, a.dtype == np.complex128))
                  for t, a in arrays.items()}

    def first(moves):
        values, leaves = place(case, moves)
        return weighted(case, values), leaves

    def second(moves):
        total, leaves = first(moves)
        if total is None or total.stop_gradient:
            return None, leaves
        grads = _core.grad([total], leaves, create_graph=True, allow_unused=True)
        return projected(np.random.RandomState(13), [g for g in grads if g is not None]), leaves
    if order == 1:
        return slope_problem(first, False, directions, "gradient")
    return slope_problem(second, True, directions, "second gradient")


def gradient_cases(op):
    for index, sample in enumerate(op["samples"]):
        if not sample.get("gradient", True):
            continue
        for dtype in matrix.case_dtypes(op, sample):
            if dtype in ("F64", "C128", None):
                case = runner.resolve(matrix.build(op, index, sample, dtype))
                if any(float_inputs(case)):
                    yield case


@each(DIFFERENTIABLE)
def test_gradient(op):
    problems, tried = [], 0
    for case in gradient_cases(op):
        problem = attempt(case, lambda: gradient_problem(case, 1))
        tried += problem is None
        if problem and not problem.endswith(UNTRIED):
            problems.append(problem)
    if not tried and not problems:
        problems.append("no sample reaches it in float64")
    verdict(op, "gradient", problems)


@each(DIFFERENTIABLE)
def test_second_gradient(op):
    """Also: where a gradient op has no gradient, in Paddle either, asking for one is an error, no wrong number."""
    problems, tried = [], 0
    for case in gradient_cases(op):
        problem = attempt(case, lambda: gradient_problem(case, 2))
        refused = re.search(r"backward: (\w+) is not differentiable", problem or "")
        if problem is None or refused and refused[1] in NOT_TWICE:
            tried += 1
        elif not problem.endswith(UNTRIED):
            problems.append(problem)
    if not tried and not problems:
        problems.append("no sample reaches it in float64")
    verdict(op, "second", problems)


@each([op for op in TABLE if op["vjp"] in ("none", "refused") and has_tensors(op)])
def test_not_differentiable(op):
    """vjp: none: nothing flows back. vjp: refused: backward is an error that names the op."""
    problems, tried = [], 0
    for case in gradient_cases(op):
        targets = {t: 0 for t in float_inputs(case)}

        def body():
            total = weighted(case, place(case, targets)[0])
            if total is None or op["vjp"] == "none":
                return None if total is None or total.stop_gradient else "a gradient is recorded"
            try:
                total.backward()
            except Exception as e:
                return None if f"{op['name']} is not differentiable" in str(e) else f"another error: {e}"
            return "backward came through"
        problem = attempt(case, body)
        tried += 1
        if problem:
            problems.append(problem)
    verdict(op, "not_differentiable", problems, tried or op["vjp"] == "none")


# ---- programs --------------------------------------------------------------------------------

def captured(case, values, kept=None):
    """The op as a program over its tensors (flattened), and those tensors; its outputs, or those that are to be kept."""
    flat = []
    for v in values.values():
        flat += v if isinstance(v, list) else [v] if isinstance(v, _core.Tensor) else []

    def fn(*symbols):
        it = iter(symbols)
        given = {k: [next(it) if isinstance(x, _core.Tensor) else x for x in v] if isinstance(v, list)
                 else next(it) if isinstance(v, _core.Tensor) else v for k, v in values.items() if v is not None}
        result = getattr(_core, case.op["name"])(**given, **case.attrs)
        outs = []
        for out in runner.outputs(case, given, result):
            outs += out if isinstance(out, list) else [] if out is None else [out]
        return [out for i, out in enumerate(outs) if kept is None or kept[i]]
    return _core.capture(fn, [(f"x{i}", list(t.shape), t.dtype) for i, t in enumerate(flat)]), flat


def flatten(values):
    out = []
    for v in values:
        out += flatten(v) if isinstance(v, list) else [] if v is None else [v]
    return out


CAPTURABLE = [op for op in TABLE if has_tensors(op) and "RANDOM" not in op["flags"]]


@each(CAPTURABLE)
def test_captured(op):
    def body(case):
        program, flat = captured(case, runner.tensors(case))
        return runner.difference(runner.to_numpy(program.run(flat)), flatten(runner.call(case)), 0)
    problems = [p for p in (attempt(c, lambda: body(c)) for c in cases(op)) if p]
    verdict(op, "captured", problems)


@each(CAPTURABLE)
def test_saved(op, tmp_path):
    def body(case):
        program, flat = captured(case, runner.tensors(case))
        program.save(str(tmp_path / "m"))
        loaded = _core.load_program(str(tmp_path / "m"))
        eager = flatten(runner.call(case))
        return runner.difference(runner.to_numpy(loaded.run(flat)), eager, max(case.tolerance(), 1e-6))
    if not op["wires"]:  # paddle: none
        return verdict(op, "saved", not_refused(op, "saved", body))
    tried = [c for c in cases(op) if c.dtype in ("F32", "I64")]
    verdict(op, "saved", [p for p in (attempt(c, lambda: body(c)) for c in tried) if p])


# ---- kernels and bad input -------------------------------------------------------------------

@each([op for op in TABLE if len(op["kernels"]) > 1])
def test_backends(op):
    problems = []
    for backend in sorted({k.rsplit("_", 1)[1] for k in op["kernels"]} - {"cpu"}):
        for case in cases(op):
            def body():
                _core.set_flag("backends", "cpu")
                portable = runner.call(case)
                _core.set_flag("backends", f"{backend},cpu")
                got, portable = (matrix.comparable(op, outs) for outs in (runner.call(case), portable))
                return runner.difference(got, portable, 2 * case.tolerance())
            problem = attempt(case, body)
            if problem:
                problems.append(f"{backend}: {problem}")
    _core.set_flag("backends", "onednn,openblas,cpu")
    verdict(op, "backends", problems)


@each([op for op in TABLE if has_tensors(op)])
def test_refused(op):
    """Wrong dtypes, missing and odd-shaped tensors: an exception that names the op, or a result; never a crash."""
    problems = []
    case = next(cases(op))
    for f in matrix.tensor_fields(op):
        values = runner.tensors(case)
        if f["name"] not in values or f["kind"] != "TENSOR" or values[f["name"]] is None:
            continue
        wrong = [d for d in matrix.NUMPY if d not in op["dtypes"] and d != "BF16"]
        odd = [np.zeros((2, 3, 1, 2, 7)), np.zeros(()), np.zeros((0, 3)), np.full((3,), 1 << 40)]
        for value in [None] + odd + [np.zeros((4, 5), matrix.NUMPY[d]) for d in wrong]:
            given = dict(values)
            given[f["name"]] = None if value is None else _core.from_numpy(np.ascontiguousarray(value))
            is_first = f is matrix.tensor_fields(op)[0]
            try:
                getattr(_core, op["name"])(**given, **case.attrs)
                if value is None and "OPTIONAL" not in f["flags"]:
                    problems.append(f"{f['name']}=None was taken")
                elif is_first and value is not None and value.dtype.name in {matrix.NUMPY[d] for d in wrong}:
                    problems.append(f"{f['name']}: {value.dtype} was taken")
            except SystemError as e:
                problems.append(f"{f['name']}: SystemError: {e}")
            except Exception as e:
                if op["name"] not in str(e):
                    problems.append(f"{f['name']}: the message does not name the op: {e}")
    verdict(op, "refused", problems)
