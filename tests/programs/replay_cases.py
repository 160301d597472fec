"""replay_cases.py OUT MODULE…: the parity cases of modules, once eagerly and once as static programs, on Proa alone.

Inputs become data, what a case returns is fetched, gradients come from static.gradients. OUT gets a line a case:
`same`, `differs: …`, or `refused: …` for one that static mode cannot run because it looks at values.
"""
import importlib.util
import pathlib
import sys
import warnings

import numpy as np
import paddle

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/parity"))
import parity

static = paddle.static
eager_leaf = parity._leaf


def as_program(one):
    """The result of parity.run, from a static program."""
    import zlib
    parity._state["rng"], parity._state["leaves"] = np.random.default_rng(zlib.crc32(one.id.encode())), []
    feed, leaves = {}, []

    def leaf(values, dtype, grad):
        name = f"in_{len(feed)}"
        t = static.data(name, list(np.shape(values)), dtype)
        paddle.disable_static()
        feed[name] = paddle.to_tensor(values).astype(dtype)
        paddle.enable_static()
        floating = dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
        t.stop_gradient = not (grad and floating)
        if grad and floating:
            leaves.append(t)
        return t

    main, startup = static.Program(), static.Program()
    parity._leaf = leaf
    paddle.enable_static()
    try:
        with static.scope_guard(static.Scope()), static.program_guard(main, startup):
            paddle.seed(1)
            np.random.seed(1)
            returned = parity._flat(one.fn())
            tensors = [v for v in returned if isinstance(v, paddle.Tensor)]
            total = parity._weighted(tensors) if one.grad and leaves else None
            grads = static.gradients([total], leaves) if total is not None else []
            return run(main, startup, feed, returned, tensors, grads)
    finally:
        paddle.disable_static()
        parity._leaf = eager_leaf


def run(main, startup, feed, returned, tensors, grads):
    """Values of what a case returned, and of gradients."""
    exe, scope = static.Executor(), static.global_scope()
    given = {name: np.array(scope.find_var(name).get_tensor()) for name in scope.local_var_names()}
    exe.run(startup)
    for name, value in given.items():  # what the case set by hand
        scope.find_var(name).get_tensor().set(value)
    everything = [*tensors, *grads]
    fetched = iter(exe.run(main, feed, [v for v in everything if v is not None and v.is_symbolic], return_numpy=False))
    values = [next(fetched)._value() if v is not None and v.is_symbolic else v for v in everything]
    return [v for v in returned if not isinstance(v, paddle.Tensor)], values[:len(tensors)], values[len(tensors):]


def eagerly(one):
    import zlib
    parity._state["rng"], parity._state["leaves"] = np.random.default_rng(zlib.crc32(one.id.encode())), []
    paddle.seed(1)
    np.random.seed(1)
    returned = parity._flat(one.fn())
    tensors = [v for v in returned if isinstance(v, paddle.Tensor)]
    leaves, grads = parity._state["leaves"], []
    total = parity._weighted(tensors) if one.grad and leaves else None
    if total is not None:
        total.backward()
        grads = [t.grad for t in leaves]
    return [v for v in returned if not isinstance(v, paddle.Tensor)], tensors, grads


def different(want, got):
    for what, a, b in zip(("value", "output", "gradient"), want, got):
        if what == "value":
            if repr(a) != repr(b):
                return f"{what}: {a!r} and {b!r}"
            continue
        if len(a) != len(b):
            return f"{what}s: {len(a)} and {len(b)}"
        for i, (x, y) in enumerate(zip(a, b)):
            if (x is None) != (y is None):
                return f"{what} {i}: {x is None} and {y is None}"
            if x is None:
                continue
            x, y = x.detach(), y.detach()
            if str(x.dtype) != str(y.dtype) or list(x.shape) != list(y.shape):
                return f"{what} {i}: {x.dtype} {x.shape} and {y.dtype} {y.shape}"
            x, y = x.numpy(), y.numpy()
            if not np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"):
                worst = np.nanmax(np.abs(x.astype("complex128") - y.astype("complex128")))
                return f"{what} {i}: by {worst}"
    return None


def main():
    out, lines = sys.argv[1], []
    warnings.simplefilter("ignore")
    for path in sys.argv[2:]:
        spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        before = len(parity.CASES)
        spec.loader.exec_module(module)
        for one in parity.CASES[before:]:
            try:
                want = eagerly(one)
            except Exception:
                continue
            try:
                found = different(want, as_program(one))
                lines.append(f"{one.id} {'same' if found is None else 'differs: ' + found}")
            except Exception as e:
                text = str(e).split("\n")[0]
                lines.append(f"{one.id} refused: {type(e).__name__}: {text}")
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


main()
