"""Runs random programs, with the `paddle` that is installed.

    run.py make OUT KIND FIRST COUNT    draws programs of the seeds from FIRST on, and runs them in every mode; KIND found: found.txt
    run.py answer MADE OUT              what real Paddle says to the same programs, and to the files exported from them

A mode's outcome is a list of arrays, or the text of an error."""
import importlib.util
import os
import pathlib
import pickle
import sys
import tempfile

import numpy as np
import paddle

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import draw


def loaded(source, folder, name):
    path = pathlib.Path(folder) / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def array_of(t):
    return np.array((t.astype("float32") if "float16" in str(t.dtype) else t).detach().numpy())


def weighted(outputs):
    """A number that depends on every element of every floating output, or None."""
    total = None
    for t in outputs:
        if t.stop_gradient or not ("float" in str(t.dtype) or "complex" in str(t.dtype)):
            continue
        t = paddle.as_real(t) if "complex" in str(t.dtype) else t
        n = int(np.prod(t.shape))
        weights = paddle.to_tensor(np.cos(np.arange(n) + 1.0).reshape(t.shape).astype("float32")).astype("float64")
        part = (t.astype("float64") * weights).sum()
        total = part if total is None else total + part
    return total


def gradients(outputs, inputs, more=False):
    loss = weighted(outputs)
    leaves = [t for t in inputs if not t.stop_gradient]
    if loss is None:
        return [None] * len(leaves)
    return paddle.grad([loss], leaves, create_graph=more, allow_unused=True)


def attempt(call):
    try:
        return [None if t is None else t if isinstance(t, np.ndarray) else array_of(t) for t in call()]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def with_gradients(function, inputs):
    def call():
        tensors = list(draw.tensors_of(inputs).values())
        outputs = function(*tensors)
        values = [array_of(t) for t in outputs]
        return [*values, *gradients(outputs, tensors)]
    return call


def second_gradients(function, inputs):
    def call():
        tensors = list(draw.tensors_of(inputs).values())
        first = [g for g in gradients(function(*tensors), tensors, True) if g is not None and not g.stop_gradient]
        return gradients(first, tensors)
    return call


def listed(outputs):
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def eager_modes(function, inputs):
    return {"values": attempt(lambda: function(*draw.tensors_of(inputs, False).values())),
            "eager": attempt(with_gradients(function, inputs))}


SPECS = {"fixed": lambda shape: list(shape), "batch": lambda shape: [None, *shape[1:]] if shape else [],
         "unknown": lambda shape: [None] * len(shape)}


def exported_modes(function, inputs, folder, found, files):
    for mode, dims in SPECS.items():
        at = os.path.join(folder, mode)
        specs = [paddle.static.InputSpec(dims(np.shape(v)), dtype, name) for name, (v, dtype) in inputs.items()]
        try:
            paddle.jit.save(paddle.jit.to_static(lambda *given: tuple(function(*given)), input_spec=specs), at)
        except Exception as error:
            found[mode] = f"{type(error).__name__}: {error}"
            continue
        found[mode] = attempt(lambda: listed(paddle.jit.load(at)(*draw.tensors_of(inputs, False).values())))
        params = pathlib.Path(at + ".pdiparams")
        files[mode] = (pathlib.Path(at + ".pdmodel").read_bytes(), params.read_bytes() if params.exists() else b"")
    if "fixed" in files:
        found["predictor"] = attempt(lambda: predicted(os.path.join(folder, "fixed"), inputs))


def predicted(at, inputs):
    config = paddle.inference.Config(at + ".pdmodel", at + ".pdiparams")
    predictor = paddle.inference.create_predictor(config)
    given = draw.tensors_of(inputs, False)
    return predictor.run([given[name] for name in predictor.get_input_names()])


def made(p, kind, seed, folder):
    inputs, source, files = p.inputs, p.source(), {}
    function = loaded(source, folder, f"program_{kind}_{seed}")
    found = eager_modes(function, inputs)
    if not p.writes():
        found["second"] = attempt(second_gradients(function, inputs))
    static = paddle.jit.to_static(loaded(source, folder, f"static_{kind}_{seed}"), full_graph=True)
    found["static"] = attempt(with_gradients(static, inputs))
    exported_modes(function, inputs, folder, found, files)
    return {"id": f"{kind}/{seed}", "source": source, "inputs": inputs, "writes": p.writes(), "found": found, "files": files,
            "refused": p.refused}


def make(out, kind, first, count):
    with tempfile.TemporaryDirectory() as folder:
        if kind == "found":
            programs = [made(draw.Program.written(line), "float64", i, folder) for i, line in enumerate(draw.lines_of("found.txt"))]
        else:
            seeds = range(int(first), int(first) + int(count))
            programs = [made(draw.Program(seed, kind), kind, seed, folder) for seed in seeds]
    pathlib.Path(out).write_bytes(pickle.dumps(programs))


# ---- real Paddle -------------------------------------------------------------------------


def answer(programs_file, out):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))
    import run_wire
    programs = pickle.loads(pathlib.Path(programs_file).read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        eager = [(p["id"], p["source"], p["inputs"]) for p in programs]
        tries = [(f"{p['id']}/{i}", "\n".join([*before, line]), p["inputs"]) for p in programs
                 for i, (before, line, _) in enumerate(p["refused"])]
        files = [(f"{p['id']} {mode}", *f, feeds(p["inputs"])) for p in programs for mode, f in p["files"].items()]

        def run_eager(source, inputs):
            return eager_modes(loaded(source, folder, "program"), inputs)

        def run_second(source, inputs):
            return attempt(second_gradients(loaded(source, folder, "program"), inputs))

        def run_line(lines, inputs):
            env = draw.tensors_of(inputs)
            for line in lines.splitlines():
                exec(line.rstrip(";"), {"paddle": paddle, "F": paddle.nn.functional}, env)
            return "taken"
        found = {"eager": run_wire.answers(eager, run_eager), "second": run_wire.answers(eager, run_second), "refused": run_wire.answers(tries, run_line),
                 "files": run_wire.answers(files)}
    pathlib.Path(out).write_bytes(pickle.dumps(found))


def feeds(inputs):
    return {name: values.astype(dtype) for name, (values, dtype) in inputs.items() if dtype != "bfloat16"}


if __name__ == "__main__":
    {"make": make, "answer": answer}[sys.argv[1]](*sys.argv[2:])
