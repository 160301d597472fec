"""One function in three modes: eagerly, as a converted function (to_static) and as a static program; forward and
gradients. Needs the package that the build made."""
import numpy as np

import proa as paddle
from proa import _core

static = paddle.static
FLOATING = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def kind(t):
    return str(t.dtype).rpartition(".")[2]


def floating(t):
    return kind(t) in FLOATING


def flat(value):
    """The tensors of nested lists, tuples and dicts, in order."""
    if isinstance(value, _core.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else []


def values(tensors):
    """Values of tensors, as arrays with the dtype's name; None stays None. Rows become dense."""
    found = []
    for t in tensors:
        if t is None:
            found.append(None)
            continue
        t = _core.rows_to_dense(t) if _core.is_rows(t) else t
        a = np.array(t.detach().numpy())
        wide = (a.astype(np.uint32) << 16).view(np.float32).reshape(a.shape) if kind(t) == "bfloat16" else a
        found.append((kind(t), wide))
    return found


def weights(outs):
    """For each output that a gradient flows from, a tensor of its shape and dtype; None for the others."""
    rng, made = np.random.RandomState(7), []
    for t in outs:
        if t.stop_gradient or not floating(t):
            made.append(None)
            continue
        w = rng.standard_normal(tuple(t.shape))
        made.append(_core.cast(paddle.to_tensor(w if w.shape else float(w), dtype="float64"), t.dtype))
    return made


def run_eagerly(function, inputs, wants):
    """(values of what function returns, gradients of the inputs in `wants`, the inputs afterwards, weights): the
    gradients are of the outputs' sum with weights; none, if nothing that is returned has one."""
    leaves = leaf_copies(inputs, wants)
    _core.seed(1)
    outs = flat(function(*leaves))
    by = weights(outs)
    seeds = [(o, w) for o, w in zip(outs, by) if w is not None]
    grads = []
    if seeds and wants:
        _core.seed(2)
        grads = _core.grad([o for o, _ in seeds], [leaves[i] for i in wants], [w for _, w in seeds], allow_unused=True)
    return values(outs), values(grads), values(leaves), by


def leaf_copies(inputs, wants):
    leaves = [t.detach().clone() for t in inputs]
    for i in wants:
        leaves[i].stop_gradient = False
    return leaves


def run_converted(function, inputs, wants, by, passes):
    """The same through to_static: the backward is the program's."""
    converted = paddle.jit.to_static(function, full_graph=True)
    leaves = leaf_copies(inputs, wants)
    was = _core.get_flag("passes")
    _core.set_flag("passes", passes)
    try:
        _core.seed(1)
        outs = flat(converted(*leaves))
        seeds = [(o, w) for o, w in zip(outs, by) if w is not None]
        grads = []
        if seeds and wants:
            _core.seed(2)
            grads = _core.grad([o for o, _ in seeds], [leaves[i] for i in wants], [w for _, w in seeds],
                               allow_unused=True)
        return values(outs), values(grads), values(leaves)
    finally:
        _core.set_flag("passes", was)


class Built:
    """The same as a static program with its gradients."""

    def __init__(self, function, inputs, wants, by):
        self.main, self.startup, self.scope = static.Program(), static.Program(), static.Scope()
        paddle.enable_static()
        try:
            with static.scope_guard(self.scope), static.program_guard(self.main, self.startup):
                data = [static.data(f"in_{i}", list(t.shape), t.dtype) for i, t in enumerate(inputs)]
                for i in wants:
                    data[i].stop_gradient = False
                self.outs = flat(function(*data))
                seeds = [(o, w) for o, w in zip(self.outs, by) if w is not None]
                given = [static.data(f"seed_{k}", list(w.shape), w.dtype) for k, (_, w) in enumerate(seeds)]
                self.grads = static.gradients([o for o, _ in seeds], [data[i] for i in wants], given) \
                    if seeds and wants else []
        finally:
            paddle.disable_static()
        self.feed = {f"in_{i}": t for i, t in enumerate(inputs)}
        self.feed.update({f"seed_{k}": w for k, (_, w) in enumerate(seeds)} if seeds and wants else {})

    def run(self, passes):
        exe = static.Executor()
        program = static.CompiledProgram(self.main) if passes else self.main
        wanted = [t for t in [*self.outs, *self.grads] if t is not None and t.is_symbolic]
        with static.scope_guard(self.scope):
            _core.seed(1)
            made = iter(exe.run(program, {k: t.detach().clone() for k, t in self.feed.items()}, wanted,
                                return_numpy=False))
        got = [next(made)._value() if t is not None and t.is_symbolic else t for t in [*self.outs, *self.grads]]
        return values(got[:len(self.outs)]), values(got[len(self.outs):])  # what is fed stays as it is


def apart(want, got, limit):
    """None if two lists of values agree (limit 0: bit by bit), else a line."""
    if len(want) != len(got):
        return f"{len(got)} values, eagerly {len(want)}"
    for i, (w, g) in enumerate(zip(want, got)):
        if (w is None) != (g is None):
            return f"{i}: {'nothing' if g is None else 'something'}, eagerly the opposite"
        if w is None:
            continue
        if w[0] != g[0] or w[1].shape != g[1].shape:
            return f"{i}: {g[0]} {g[1].shape}, eagerly {w[0]} {w[1].shape}"
        line = difference(w[1], g[1], limit)
        if line:
            return f"{i}: {line}"
    return None


def difference(want, got, limit):
    same = want == got
    if want.dtype.kind in "fc":
        same |= np.isnan(want) & np.isnan(got)
    if same.all():
        return None
    if want.dtype.kind not in "fc":
        return f"{(~same).sum()} of {same.size} differ"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    w, g = want.astype(wide), got.astype(wide)
    finite = np.abs(w[np.isfinite(w)])
    scale = finite.max() if finite.size else 1.0
    with np.errstate(invalid="ignore"):
        worst = np.max(np.where(same, 0, np.nan_to_num(np.abs(w - g), nan=np.inf)))
    return None if worst <= limit * scale else f"off by {worst:.3g} where values reach {scale:.3g}"


# With passes a half may be rounded at another place; its own rounding is then what counts.
LIMITS = {"float16": 1e-3, "bfloat16": 8e-3}


def compare(function, inputs, wants, passes_too=True):
    """[complaint] of one function: mode, what differs."""
    problems = []

    def attempt(mode, body):
        try:
            line = body()
        except Exception as error:
            line = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        if line:
            problems.append(f"{mode}: {line}")

    *want, by = run_eagerly(function, inputs, wants)
    limit = max([1e-5] + [LIMITS.get(kind(t), 0) for t in inputs])

    def agree(got, limit):
        for what, a, b in zip(("output", "gradient", "input afterwards"), want, got):
            line = apart(a, b, limit)
            if line:
                return f"{what} {line}"
        return None
    attempt("to_static", lambda: agree(run_converted(function, inputs, wants, by, "none"), 0))
    built = []
    attempt("static", lambda: built.append(Built(function, inputs, wants, by)) or agree(built[0].run(False), 0))
    if passes_too:
        attempt("to_static, passes", lambda: agree(run_converted(function, inputs, wants, by, "all"), limit))
        if built:
            attempt("static, passes", lambda: agree(built[0].run(True), limit))
    return problems
