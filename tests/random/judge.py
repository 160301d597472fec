"""Differences between the modes of random programs, and between Proa and real Paddle: judge.py MADE ANSWERS."""
import pathlib
import pickle
import re
import sys

import numpy as np

# of the largest value of an array: programs amplify what a line rounds, and Paddle's kernels hold attributes in float32
TOLERANCE = {"float64": 1e-6, "complex": 1e-6, "float32": 3e-4, "mixed": 3e-4, "complex64": 3e-4, "float16": 3e-2, "bfloat16": 0.2}
# Refusals of programs, which are no differences: docs/limits.md, tests/parity/unknown_dims.txt.
REFUSALS = ("shares memory with a tensor that was changed in place", "a length that is unknown while the program is made",
            "the number of parts must be known", "is a view that was taken before its base was changed in place",
            "is a leaf that wants a gradient, which cannot be changed in place", "Paddle has no slot for a tensor that supplies it",
            "the gradient of a real transform needs the length of its last axis", "output_size cannot be given by a tensor",
            "that was changed in place afterwards",
            "writes in place to a view of", "rows to multiply, but x has 1 columns", "y has 1 rows to multiply",
            "has no axes, so none to index along")  # of unknown lengths none is 1 beside another


# A write through a view: Paddle's gradients ignore it, Proa's follow it (docs/migration.md).
THROUGH_A_VIEW = re.compile(r"^ +(paddle\.unbind|y\d+\[[^=]*\]\.|y\d+\.(reshape|transpose)\(|(y\d+) = paddle\.t\((?s:.*?)^ +\3\.\w+_\()", re.M)
# Their gradients on Paddle's CPU are wrong (finite differences agree with Proa's), as are heaviside's broadcast values.
WRONG_IN_PADDLE = re.compile(r"\b(amin|amax|(cumulative_)?trapezoid|pinv|heaviside)\(|\bgather\(\w+, [^\n]*, (-|[1-9])")
# Paddle divides by zero where a grid has one pixel on a side and corners are aligned.
NAN_IN_PADDLE = re.compile(r"affine_grid\(.*, 1\], True\)")
# Its executor makes no empty tensors, and refuses norms and distances of tensors without dims (docs/limits.md).
REFUSED_BY_EXECUTOR = ("The meta data must be valid when call the mutable data function",
                       "Attr(axis) value should be in range [-R, R-1], R is the rank of Input(X). But received axis: -1, R: 0")
# Paddle and Proa take a length that is unknown for 1 where an axis is to be squeezed (docs/limits.md).
SQUEEZED = re.compile(r"squeeze\(\w+, -?\d\)")


def refused(outcome):
    return isinstance(outcome, str) and any(r in outcome for r in REFUSALS)


def apart(want, got, limit):
    """A line on what differs; None if nothing does."""
    if isinstance(want, str) or isinstance(got, str):
        return None if isinstance(want, str) and isinstance(got, str) else f"{short(want)} | {short(got)}"
    if len(want) != len(got):
        return f"{len(want)} arrays | {len(got)}"
    for i, (w, g) in enumerate(zip(want, got)):
        if w is None or g is None:
            other = g if w is None else w
            if other is not None and np.any(other):
                return f"{i}: {'no gradient' if w is None else short(w)} | {'no gradient' if g is None else short(g)}"
            continue
        w = (w.astype(np.uint32) << 16).view(np.float32) if w.dtype == np.uint16 else w
        g = (g.astype(np.uint32) << 16).view(np.float32) if g.dtype == np.uint16 else g
        if w.shape != g.shape or (w.dtype != g.dtype and "float16" not in f"{w.dtype} {g.dtype}"):
            return f"{i}: {w.dtype} {list(w.shape)} | {g.dtype} {list(g.shape)}"
        if w.dtype.kind not in "fc":
            if not np.array_equal(w, g):
                return f"{i}: {short(w)} | {short(g)}"
            continue
        finite = np.abs(np.where(np.isfinite(w), w, 0)).max(initial=0)
        if not np.allclose(g, w, limit, limit * max(finite, 1e-2), equal_nan=True):
            return f"{i}: {short(w)} | {short(g)}"
    return None


def short(value):
    return value.split("\n")[0][:160] if isinstance(value, str) else str(np.asarray(value).ravel()[:6])[:110] if not isinstance(value, list) else "a result"


def among_modes(program):
    """Differences of a program's modes from its eager results: they are Proa's alone."""
    found, limit = program["found"], TOLERANCE[program["id"].split("/")[0]]
    for mode, base in (("static", "eager"), ("fixed", "values"), ("batch", "values"), ("unknown", "values"),
                       ("predictor", "values")):
        if mode in found and not refused(found[mode]) and not refused(found[base]):
            if mode in ("batch", "unknown") and isinstance(found[mode], str) and SQUEEZED.search(program["source"]):
                continue
            line = apart(found[base], found[mode], limit / 10 if mode == "static" else limit)
            if line:
                yield mode, line


def paddles_error(program, mode):
    """The second derivative of complex products is without a conjugation in Paddle: 2 c d for 2 c conj(d)."""
    source = program["source"]
    return mode == "second" and program["id"].startswith("complex") or mode in ("eager", "second") and (THROUGH_A_VIEW.search(source) or WRONG_IN_PADDLE.search(source)) or \
        "heaviside(" in source or NAN_IN_PADDLE.search(source)


def from_paddle(program, answers):
    limit = TOLERANCE[program["id"].split("/")[0]]
    eager, second = answers["eager"][program["id"]], answers["second"][program["id"]]
    eager = {**eager, "second": second} if isinstance(eager, dict) else {"values": eager, "eager": eager, "second": second}
    for mode in ("values", "eager", "second"):
        if mode in program["found"] and not paddles_error(program, mode):
            line = apart(eager[mode], program["found"][mode], limit)
            got = {**eager, "second": second}[mode]
            if line and not isinstance(got, str) and not refused(program["found"][mode]):  # Paddle refuses more
                yield mode, line
    for mode in program["files"]:
        if refused(program["found"][mode]) or NAN_IN_PADDLE.search(program["source"]):
            continue
        got = answers["files"][f"{program['id']} {mode}"]
        if isinstance(got, str) and (isinstance(eager["values"], str) or any(part in got for part in REFUSED_BY_EXECUTOR)):
            continue
        line = apart(program["found"]["values"], got, limit)
        if line:
            yield f"file {mode}", line


def differences(program, answers):
    """(mode, what differs), of Proa's modes and from real Paddle if answers are given."""
    found = [("modes: " + mode, line) for mode, line in among_modes(program)]
    return found + [("Paddle: " + mode, line) for mode, line in from_paddle(program, answers)] if answers else found


def configuration(dtype, modes, paddles):
    """(mode, what differs) of a training configuration. Paddle holds hyperparameters in float32; in float32 the parameters of
    which the loss is independent go where rounding sends them, so that losses alone are compared."""
    eager, limit = modes["eager"], {"float64": 1e-5, "float32": 1e-3}[dtype]
    line = apart(eager, modes["resumed"], 0)
    if line:
        yield "resumed", line
    if isinstance(eager, str):
        if paddles is None or not isinstance(paddles, str):
            yield "eager", eager
        return
    line = apart(eager, modes["compiled"], limit / 10)
    if line:
        yield "compiled", line
    if paddles is None or isinstance(paddles, str):  # Paddle refuses more
        return
    losses = [i for i, array in enumerate(eager) if array.ndim == 0] if dtype == "float32" else range(len(eager))
    line = apart([paddles[i] for i in losses], [eager[i] for i in losses], limit) if len(paddles) == len(eager) else \
        f"{len(paddles)} arrays | {len(eager)}"
    if line:
        yield "Paddle", line


def main():
    programs = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
    answers = pickle.loads(pathlib.Path(sys.argv[2]).read_bytes()) if len(sys.argv) > 2 else None
    for p in programs:
        found = differences(p, answers)
        if found:
            print("=" * 20, p["id"])
            print(p["source"].split("\n\n\n")[1].rstrip())
            print("   ", {n: (list(np.shape(v)), d) for n, (v, d) in p["inputs"].items()})
            for what, line in found:
                print(f"  -- {what}: {line}")
        for i, (_, line, error) in enumerate(p["refused"]):
            if answers and not refused(error) and answers["refused"][f"{p['id']}/{i}"] == "taken":
                print("taken by Paddle:", p["id"], line, "->", error.split("\n")[0][:160])


if __name__ == "__main__":
    main()
