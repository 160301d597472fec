"""Running a case of the matrix on Proa: arrays to tensors and back, comparison, the modes' helpers."""
import numpy as np

import matrix
from proa import _core


def strided(a):
    """The same values, every second element of a larger array apart."""
    if a.ndim == 0:
        return a
    wide = np.zeros((*a.shape[:-1], a.shape[-1] * 2), a.dtype)
    wide[..., ::2] = a
    return wide[..., ::2]


def to_tensor(v, layout=np.ascontiguousarray):
    if isinstance(v, matrix.From):
        return None
    if isinstance(v, list):
        return [to_tensor(x, layout) for x in v]
    if not isinstance(v, matrix.Array):
        return v
    if v.dtype == "BF16":
        bits = (np.ascontiguousarray(v.values).view(np.uint32) >> 16).astype(np.uint16).reshape(v.values.shape)
        return _core.from_numpy(layout(bits) if bits.ndim else bits, True)
    return _core.from_numpy(layout(v.values.copy()) if v.values.ndim else v.values.copy())


def to_numpy(t):
    if t is None:
        return None
    if isinstance(t, (list, tuple)):
        return [to_numpy(x) for x in t]
    a = np.array(t.numpy())
    return (a.astype(np.uint32) << 16).view(np.float32).reshape(a.shape) if str(t.dtype) == "paddle.bfloat16" else a


def tensors(case, layout=np.ascontiguousarray):
    return {k: to_tensor(v, layout) for k, v in case.inputs.items()}


def outputs(case, values, result):
    """The op's outputs in the table's order: results, and the inputs that it wrote to."""
    op = case.op
    outs = [f for f in op["fields"] if f["role"] == "OUT"]
    fresh = [f for f in outs if "MUTATED" not in f["flags"]]
    made = iter([result] if len(fresh) == 1 else (result or ()))
    return [values.get(f["alias"]) if "MUTATED" in f["flags"] else next(made) for f in outs]


def call(case, layout=np.ascontiguousarray):
    """Runs the op; its outputs as NumPy arrays (nested lists), in the table's order."""
    values = tensors(case, layout)
    _core.seed(1)
    result = getattr(_core, case.op["name"])(**{k: v for k, v in values.items() if v is not None}, **case.attrs)
    return to_numpy(outputs(case, values, result))


DTYPES = {v: k for k, v in matrix.NAMES.items()}


def derive(case, values):
    """Inputs that the sample takes from its forward op, as tensors: the op is called on `values` where it shares
    inputs with the case, recording if they do."""
    forward = case.forward
    given = {k: to_tensor(v) if k in case.sample["forward"] else values[k] for k, v in forward.inputs.items()}
    _core.seed(1)
    made = getattr(_core, forward.op["name"])(**{k: v for k, v in given.items() if v is not None}, **forward.attrs)
    names = [f["name"] for f in forward.op["fields"] if f["role"] == "OUT"]
    by_name = dict(zip(names, outputs(forward, given, made)))
    return {field: by_name[output] for field, output in case.derived.items()}


def resolve(case):
    """The case with values in place of every `from`; None stays None."""
    if case is not None and case.derived:
        for field, t in derive(case, tensors(case)).items():
            case.inputs[field] = matrix.Array(to_numpy(t), DTYPES[str(t.dtype).rpartition(".")[2]])
    return case


def as_list(expected, n):
    """A reference's answer as one entry an output."""
    if n == 1 and not (isinstance(expected, (list, tuple)) and len(expected) == 1):
        return [expected]
    return list(expected) if isinstance(expected, (list, tuple)) else [expected]


def difference(got, want, tolerance):
    """None if they agree, else a line that says where they do not."""
    if want is None or (isinstance(want, np.ndarray) and want.dtype.kind == "V"):
        return None
    if isinstance(want, (list, tuple)):
        if got is None or len(got) != len(want):
            return f"{0 if got is None else len(got)} tensors, expected {len(want)}"
        return next((d for d in (difference(g, w, tolerance) for g, w in zip(got, want)) if d), None)
    if got is None:
        return "no output"
    want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.size == 0:
        return None
    if got.dtype.kind in "biu" and want.dtype.kind in "biu":
        bad = got != want
        return f"{bad.sum()} of {got.size} differ, first {got[bad][0]} for {want[bad][0]}" if bad.any() else None
    g, w = got.astype(np.complex128), want.astype(np.complex128)
    same = (g == w) | (np.isnan(g) & np.isnan(w))
    finite = np.abs(w[np.isfinite(w)])
    scale = max(1.0, finite.max() if finite.size else 1.0)
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0, np.abs(g - w))
    worst = np.nanmax(np.where(np.isnan(error), np.inf, error))
    return None if worst <= tolerance * scale else f"off by {worst / scale:.3g} of the range, allowed {tolerance:g}"
