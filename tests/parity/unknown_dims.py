"""Every public function that a case module calls with tensors, once more with all dims None: exported, reloaded and run
at other sizes, against eager execution. unknown_dims.py MODULE OUT; runs under Proa alone (`python -m proa`). A module with
LAYERS (tests/layer_cases.py) has layers in place of cases.

Writes {name: [(call, outcome, text)]}; an outcome is "agrees" (text: at how many other sizes), "refused" (no program is
made, or the run refuses the sizes) or "differs".
"""
import functools
import importlib.util
import inspect
import os
import pathlib
import pickle
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import numpy as np
import paddle
import parity

CALLS = 6       # of one function, that differ in more than values
SIZES = 2       # other than the case's own
NAMESPACES = ["", "linalg", "nn.functional", "vision.ops", "text", "metric", "geometric", "incubate",
              "fft", "signal"]
FLOATING = ("float16", "bfloat16", "float32", "float64")


# ---- recording ----------------------------------------------------------------------------


class Call:
    """One call of a public function: its tensors, and how to make it with others in their place."""

    def __init__(self, name, function, args, kwargs):
        self.name, self.function, self.tensors = name, function, []
        self.args, self.kwargs = self._taken(args), self._taken(kwargs)

    def _taken(self, value):
        if isinstance(value, paddle.Tensor):
            self.tensors.append(value.detach().clone())
            return Place(len(self.tensors) - 1)
        if isinstance(value, (list, tuple)):
            return type(value)(self._taken(one) for one in value)
        return {key: self._taken(one) for key, one in value.items()} if isinstance(value, dict) else value

    def kind(self):
        """The key of a call: calls whose keys differ are worth trying both."""
        return repr((self.args, self.kwargs, [(str(t.dtype), t.ndim) for t in self.tensors]))

    def __call__(self, tensors):
        if self.name.endswith("_"):  # writes to its argument: not to what the caller holds
            tensors = [paddle.assign(t) for t in tensors]
        return flat(self.function(*filled(self.args, tensors), **filled(self.kwargs, tensors)))


class Place:
    """Placeholder of a call's tensor number i."""

    def __init__(self, i):
        self.i = i

    def __repr__(self):
        return f"t{self.i}"


def filled(value, tensors):
    if isinstance(value, Place):
        return tensors[value.i]
    if isinstance(value, (list, tuple)):
        return type(value)(filled(one, tensors) for one in value)
    return {key: filled(one, tensors) for key, one in value.items()} if isinstance(value, dict) else value


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for one in value for t in flat(one)]
    return [value] if isinstance(value, paddle.Tensor) else []


class Recorder:
    """Puts itself round the public functions and the methods of Tensor; what is called in static mode has no values to compare."""

    def __init__(self):
        self.calls, self.inside, self.eager = {}, 0, paddle.in_dynamic_mode
        for space in NAMESPACES:
            owner = paddle
            for part in filter(None, space.split(".")):
                owner = getattr(owner, part, None)
            for name in dir(owner) if owner is not None else ():
                self._wrap(owner, name, f"paddle.{space}.{name}".replace("..", "."))
        for name in dir(paddle.Tensor):
            self._wrap(paddle.Tensor, name, f"paddle.Tensor.{name}")

    def _wrap(self, owner, name, called):
        function = inspect.getattr_static(owner, name) if owner is paddle.Tensor else getattr(owner, name, None)
        if name.startswith("_") or not callable(function) or isinstance(function, type) or \
                name in ("to_tensor", "save", "load", "grad", "backward", "set_value", "numpy", "tolist", "item"):
            return

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            self.inside += 1
            try:
                made = Call(called, function, args, kwargs) if self.inside == 1 and self.eager() else None
                result = function(*args, **kwargs)
            finally:
                self.inside -= 1
            if made and made.tensors and flat(result):  # it did not raise
                known = self.calls.setdefault(called, {})
                if len(known) < CALLS:
                    known.setdefault(made.kind(), made)
            return result
        try:
            setattr(owner, name, wrapper)
        except (AttributeError, TypeError):
            pass


# ---- other sizes --------------------------------------------------------------------------


def resized(tensor, dims, rng):
    """A tensor of these dims with the values of another, over and over; floating ones a little apart."""
    values = np.array(tensor.astype("float32") if tensor.dtype == paddle.bfloat16 else tensor)
    for axis, n in enumerate(dims):
        values = np.take(values, np.arange(n) % values.shape[axis], axis)
    if values.dtype.kind in "fc":
        values = (values * rng.uniform(.97, 1, values.shape)).astype(values.dtype)
    return paddle.to_tensor(values).astype(tensor.dtype)


def other_sizes(shapes):
    """Shapes for the same arguments, the most changed first."""
    lengths = sorted({n for shape in shapes for n in shape if n > 1})
    rank = max(map(len, shapes))
    for change in (lambda n: n + 1, lambda n: 2 * n):
        yield [[change(n) if n > 1 else n for n in shape] for shape in shapes]
    for last in range(1, rank):  # all but the last dims
        yield [[n + 2 if n > 1 and i < len(shape) - last else n for i, n in enumerate(shape)] for shape in shapes]
    for one in lengths:
        for change in (1, one):
            yield [[n + change if n == one else n for n in shape] for shape in shapes]
    for change in (2, 3):
        yield [[n + change if i == 0 and n > 1 else n for i, n in enumerate(shape)] for shape in shapes]
        for k, shape in enumerate(shapes):
            for axis, n in enumerate(shape):
                yield [[m + change if (j, i) == (k, axis) else m for i, m in enumerate(other)]
                       for j, other in enumerate(shapes)]


def eagerly(call, tensors):
    paddle.seed(7)
    return call(tensors)


def inputs_of(call):
    """Tensors to call with: the case's own, and those of other sizes with which the function works eagerly."""
    own = [t.shape for t in call.tensors]
    yield call.tensors
    if any(0 in shape for shape in own) or not any(own):
        return
    found, seen = 0, [own]
    for shapes in other_sizes(own):
        if shapes in seen:
            continue
        seen.append(shapes)
        rng = np.random.default_rng(3)
        tensors = [resized(t, dims, rng) for t, dims in zip(call.tensors, shapes)]
        try:
            eagerly(call, tensors)
        except Exception:  # these sizes do not fit the other arguments
            continue
        yield tensors
        found += 1
        if found == SIZES:
            return


# ---- exported and reloaded ----------------------------------------------------------------


def values(tensors):
    return [np.array(t.astype("float32") if t.dtype == paddle.bfloat16 else t.detach()) for t in tensors]


def apart(want, got, random):
    """A line on what differs; None if nothing does."""
    if len(want) != len(got):
        return f"{len(got)} tensors, eagerly {len(want)}"
    for i, (w, g) in enumerate(zip(want, got)):
        if w.shape != g.shape or w.dtype != g.dtype:
            return f"output {i}: {g.dtype} {list(g.shape)}, eagerly {w.dtype} {list(w.shape)}"
        if random or w.size == 0:
            continue
        if w.dtype.kind not in "fc":
            if not np.array_equal(w, g):
                return f"output {i}: {(w != g).sum()} of {w.size} differ"
        elif not np.allclose(g, w, 1e-5, 1e-5 * np.nanmax(np.abs(np.where(np.isfinite(w), w, 0)), initial=0),
                             equal_nan=True):
            return f"output {i}: off by {np.nanmax(np.abs(g - w)):.3g}"
    return None


def text_of(error):
    """An error's first line; of a conversion's, which begins with the user's lines, the whole text on one line."""
    lines = str(error).splitlines() or [""]
    told = " ".join(line.strip() for line in lines) if lines[0].startswith("In transformed code") else lines[0]
    return f"{type(error).__name__}: {told}"


def outcome(call, folder):
    inputs = list(inputs_of(call))
    paddle.seed(8)
    random = apart(values(eagerly(call, inputs[0])), values(call(inputs[0])), False) is not None
    specs = [paddle.static.InputSpec([None] * t.ndim, t.dtype, f"in_{i}") for i, t in enumerate(call.tensors)]
    try:
        def program(*tensors):
            return call(list(tensors))
        paddle.jit.save(paddle.jit.to_static(program, input_spec=specs), folder)
        loaded = paddle.jit.load(folder)
    except Exception as error:
        return "refused", text_of(error)
    for tensors in inputs:
        want = values(eagerly(call, tensors))
        try:
            paddle.seed(7)
            got = values(flat(loaded(*[t.clone() for t in tensors])))
        except Exception as error:
            return "refused", f"at {[t.shape for t in tensors]}: {text_of(error)}"
        line = apart(want, got, random)
        if line:
            return "differs", f"at {[t.shape for t in tensors]}: {line}"
    return "agrees", f"{len(inputs) - 1} other sizes"


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def layers_of(module):
    """{name: {kind: call}} of a module's LAYERS."""
    calls = {}
    for name, (make, makers) in module.LAYERS.items():
        rng = np.random.RandomState(3)
        layer = make()
        layer.eval()
        call = Call(name, layer, [paddle.to_tensor(one(rng)) for one in makers], {})
        calls[name] = {call.kind(): call}
    return calls


def functions_of(path):
    """{name: {kind: call}} of the public functions that a module's cases call."""
    recorder = Recorder()
    load(path)
    for one in parity.CASES:
        try:
            parity.run(one)
        except Exception:  # test_parity reports it
            recorder.inside = 0
    recorder.inside = 1  # from here on nothing is a case's call
    return recorder.calls


def main():
    path, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, calls in (layers_of(load(path)) if path.stem == "layer_cases" else functions_of(path)).items():
            for i, call in enumerate(calls.values()):
                try:
                    found.setdefault(name, []).append((call.kind(), *outcome(call, os.path.join(folder, f"f{i}"))))
                except Exception as error:
                    found[name].append((call.kind(), "refused", f"eagerly: {text_of(error)}"))
    out.write_bytes(pickle.dumps(found))
    counts = {}
    for outcomes in found.values():
        for _, what, _ in outcomes:
            counts[what] = counts.get(what, 0) + 1
    print(f"{path.stem}: {len(found)} functions, {counts}")


main()
