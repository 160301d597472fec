"""Whether two outcomes of a parity case agree: dtypes, shapes and values. Needs NumPy alone."""
import numpy as np

# allowed difference as a part of the expected output's range (at least 1)
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-10, "complex64": 2e-5,
             "complex128": 1e-10}


def _arrays(where, got, want, tol):
    (gkind, gtype, g), (wkind, wtype, w) = got, want
    if (gkind, gtype) != (wkind, wtype):
        return f"{where}: {gkind} of {gtype}, Paddle {wkind} of {wtype}"
    if g.shape != w.shape:
        return f"{where}: shape {list(g.shape)}, Paddle {list(w.shape)}"
    if g.size == 0:
        return None
    if w.dtype.kind not in "fc":
        bad = g != w
        return f"{where}: {bad.sum()} of {w.size} differ, first {g[bad].flat[0]!r}, Paddle {w[bad].flat[0]!r}" \
            if bad.any() else None
    g, w = g.astype(np.complex128), w.astype(np.complex128)
    same = (g == w) | (np.isnan(g) & np.isnan(w))
    finite = np.abs(w[np.isfinite(w)])
    scale = max(1.0, finite.max() if finite.size else 1.0)
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.abs(g - w))
    worst = np.where(np.isnan(error), np.inf, error).max() / scale
    allowed = TOLERANCE.get(wtype, 1e-10) if tol is None else tol
    return None if worst <= allowed else f"{where}: off by {worst:.3g} of the range, allowed {allowed:g}"


def difference(where, got, want, tol=None):
    """None, or a line that says where the outcomes part."""
    if isinstance(want, tuple) and want and want[0] in ("tensor", "array"):
        if not (isinstance(got, tuple) and got and got[0] in ("tensor", "array")):
            return f"{where}: {got!r}, Paddle a {want[0]} of {want[1]}{list(want[2].shape)}"
        return _arrays(where, got, want, tol)
    if isinstance(want, dict):
        if not isinstance(got, dict) or list(got) != list(want):
            return f"{where}: keys {list(got) if isinstance(got, dict) else got!r}, Paddle {list(want)}"
        pairs = [(f"{where}[{k}]", got[k], want[k]) for k in want]
    elif isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"{where}: {len(got) if isinstance(got, list) else repr(got)} entries, Paddle {len(want)}"
        pairs = [(f"{where}[{i}]", g, w) for i, (g, w) in enumerate(zip(got, want))]
    elif isinstance(want, float) and isinstance(got, float):
        close = got == want or abs(got - want) <= (tol or 1e-6) * max(1.0, abs(want)) or (got != got and want != want)
        return None if close else f"{where}: {got!r}, Paddle {want!r}"
    else:
        return None if type(got) is type(want) and got == want else f"{where}: {got!r}, Paddle {want!r}"
    return next((d for d in (difference(*p, tol) for p in pairs) if d), None)


def verdict(got, want):
    """None if the case agrees, else what is wrong."""
    if "failed" in want:
        return "real Paddle raised (the case is wrong):\n" + want["failed"]
    if "failed" in got:
        return "Proa raised:\n" + got["failed"]
    return difference("returned", got["returned"], want["returned"], want["tol"]) or \
        difference("gradients", got.get("gradients"), want.get("gradients"), want["tol"])
