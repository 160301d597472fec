"""Runs the models of one recipe on one side and writes what they computed; applications.py compares.

    python [-m proa] one_application.py FOLDER RECIPE WORK run|predict paddle|proa SECONDS [MODEL…]

Each model runs in a process forked from one that has imported the package and the repository. `run` builds, computes, trains
and exports; on Proa it starts from the weights that the other side has left in WORK and predicts both exports. `predict`
reads Proa's exports in real Paddle."""
import importlib.util
import json
import os
import pathlib
import random
import resource
import signal
import sys
import time
import traceback
import warnings

import numpy as np

warnings.simplefilter("ignore")
for old in ("bool", "int", "float", "complex", "object", "str"):  # aliases that NumPy has dropped since
    if old not in vars(np):
        setattr(np, old, {"bool": bool, "int": int, "float": float, "complex": complex, "object": object, "str": str}[old])

try:
    import scipy.signal
    if "kaiser" not in vars(scipy.signal):  # windows that SciPy has moved since
        scipy.signal.kaiser = scipy.signal.windows.kaiser
except ImportError:
    pass

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
RANDOM = {"p", "dropout", "dropout_rate", "drop_prob", "drop_rate", "dropout_prob", "drop_path_rate", "attention_dropout",
          "attn_drop_rate", "act_dropout", "attn_dropout", "drop_path_prob", "layerdrop", "keep_prob_drop",
          "attention_probs_dropout_prob", "drop_connect_rate", "hidden_dropout_prob", "spatial_dropout"}
# Paddle's side also runs with weights larger by this factor, and notes how its own numbers change: what Proa's may be off where a
# model amplifies the last bits.
NEAR = 1 + 1e-6


def arrays(value, found):
    """Tensors of an output of any structure, in order."""
    import paddle
    if isinstance(value, paddle.Tensor):
        found.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            arrays(item, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            arrays(item, found)
    return found


def numbers(value):
    return [tensor.numpy() for tensor in arrays(value, [])]


def write(path, items):
    np.savez(path, **{f"{i}": np.asarray(item) for i, item in enumerate(items)})


def reseed():
    import paddle
    paddle.seed(7)
    np.random.seed(7)
    random.seed(7)


def without_dropout(layer):
    """The two sides draw different random numbers: no layer, and no call of F.dropout, drops anything."""
    import paddle.nn.functional as F
    F.dropout = lambda x, *args, **named: x
    for part in layer.sublayers(include_self=True):
        for name, value in list(vars(part).items()):
            if name in RANDOM and isinstance(value, float):
                setattr(part, name, 0.0)


def hidden_layers(layer):
    """Layers that others hold in plain lists, outside the state dict: [(name, layer)], so that their weights are the same, too."""
    import paddle
    known = {id(part) for part in layer.sublayers(include_self=True)}
    found = []
    for path, part in [("", layer), *layer.named_sublayers()]:
        for key, value in vars(part).items():
            for i, item in enumerate(value if isinstance(value, (list, tuple)) else ()):
                if isinstance(item, paddle.nn.Layer) and id(item) not in known:
                    known.add(id(item))
                    found.append((f"{path}.{key}.{i}", item))
    return found


def change(a, b):
    """The largest difference of two arrays' finite numbers; 0 where they cannot be compared."""
    if a.shape != b.shape or a.dtype.kind not in "fc":
        return 0.0
    off = np.abs(a - b)
    return off[np.isfinite(off)].max(initial=0)


def loss_of(outputs):
    """A weighted mean of every output through which a gradient flows."""
    import paddle
    total = None
    for tensor in arrays(outputs, []):
        if tensor.stop_gradient or "float" not in str(tensor.dtype):
            continue
        weight = np.cos(np.arange(int(np.prod(tensor.shape)), dtype="float32")).reshape(tensor.shape)
        part = (tensor.astype("float32") * paddle.to_tensor(weight)).mean()
        total = part if total is None else total + part
    return total


class Case:
    """One model on one side: `times` holds seconds, files stand in `work`."""

    def __init__(self, recipe, name, work, side):
        self.side, self.work = side, work / name
        self.work.mkdir(parents=True, exist_ok=True)
        self.times, self.recipe, self.name = {}, recipe, name

    def file(self, name):
        return str(self.work / f"{self.side}.{name}")

    def start(self):
        made = self.recipe.MODELS[self.name]()
        self.layer, self.inputs, self.options = (*made, {})[:3]

    def build(self):
        import paddle
        reseed()
        self.start()
        without_dropout(self.layer)
        state = self.layer.state_dict()
        kept = self.work / "weights.npz"
        hidden = {f"hidden {path}.{name}": value for path, part in hidden_layers(self.layer)
                  for name, value in part.state_dict().items()}
        if self.side == "paddle":
            np.savez(kept, **{name: value.numpy() for name, value in {**state, **hidden}.items()})
        else:
            given = dict(np.load(kept))
            for name, value in hidden.items():
                value.set_value(given.pop(name))
            if list(given) != list(state):
                odd = [pair for pair in zip([*given, None], [*state, None]) if pair[0] != pair[1]]
                raise AssertionError(f"state_dict has other names: {odd[0][0]!r} in Paddle, {odd[0][1]!r} here")
            self.layer.set_state_dict({name: paddle.to_tensor(value) for name, value in given.items()})
        self.weights = {name: value.numpy() for name, value in state.items()}

    def tensors(self):
        import paddle
        return [paddle.to_tensor(value) for value in self.inputs]

    def forward(self):
        self.layer.eval()
        self.restore(NEAR)
        reseed()
        near = numbers(self.layer(*self.tensors()))
        self.restore()
        tensors, best = self.tensors(), []
        for _ in range(2):
            reseed()
            start = time.process_time()
            out = self.layer(*tensors)
            values = numbers(out)
            best.append(time.process_time() - start)
        self.times["forward"] = min(best)
        write(self.file("forward.npz"), values)
        if self.side == "paddle":
            write(self.file("forward_noise.npz"), [change(a, b) for a, b in zip(values, near)])

    def step(self, tensors, optimizer):
        reseed()
        loss = loss_of(self.layer(*tensors))
        loss.backward()
        gradients = None
        if optimizer is not None:
            gradients = {name: p.grad.numpy() for name, p in self.layer.named_parameters() if p.grad is not None}
            optimizer.step()
            optimizer.clear_grad()
        return float(loss), gradients

    def restore(self, factor=1.0):
        import paddle
        self.layer.set_state_dict({name: paddle.to_tensor(value * np.asarray(factor, value.dtype) if value.dtype.kind == "f"
                                                          else value) for name, value in self.weights.items()})

    def two_steps(self):
        """With momentum: (the first step's gradients, how the state moved, and the losses)."""
        import paddle
        self.layer.train()
        parameters = [p for p in self.layer.parameters() if not p.stop_gradient]
        optimizer = paddle.optimizer.Momentum(1e-3, 0.9, parameters=parameters, weight_decay=1e-4)
        before = {name: value.numpy() for name, value in self.layer.state_dict().items()}
        tensors, losses, seconds, first = self.tensors(), [], [], None
        for turn in range(2):
            start = time.process_time()
            loss, gradients = self.step(tensors, optimizer)
            seconds.append(time.process_time() - start)
            losses.append(loss)
            first = first or gradients
        self.times["step"] = min(seconds)
        after = {name: value.numpy() for name, value in self.layer.state_dict().items()}
        moved = {name: after[name] - before[name] for name in after if after[name].dtype.kind == "f"}
        return first, {**moved, "losses": np.array(losses, "float32")}

    def train(self):
        """Runs two steps."""
        if self.side == "paddle":
            self.restore(NEAR)
            near = self.two_steps()
            self.restore()
        gradients, moved = self.two_steps()
        np.savez(self.file("gradients.npz"), **gradients)
        np.savez(self.file("steps.npz"), **moved)
        if self.side == "paddle":
            for name, ours, other in (("gradients", gradients, near[0]), ("steps", moved, near[1])):
                np.savez(self.file(f"{name}_noise.npz"), **{key: change(ours[key], other[key]) for key in ours})

    def specs(self):
        import paddle
        fixed = self.options.get("fixed", False)
        return [paddle.static.InputSpec([None if i == 0 and not fixed else n for i, n in enumerate(value.shape)],
                                        str(value.dtype), name=f"x{k}") for k, value in enumerate(self.inputs)]

    def export(self):
        import paddle
        self.restore()
        self.layer.eval()
        paddle.jit.save(paddle.jit.to_static(self.layer, input_spec=self.specs()), self.file("model"))

    def predict(self, model, result):
        from paddle import inference
        config = inference.Config(model + ".pdmodel", model + ".pdiparams")
        config.disable_glog_info()
        config.set_cpu_math_library_num_threads(1)
        predictor = inference.create_predictor(config)
        names, best = predictor.get_input_names(), []
        for _ in range(2):
            start = time.process_time()
            for name in names:
                predictor.get_input_handle(name).copy_from_cpu(self.inputs[int(name[1:])])
            predictor.run()
            values = [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]
            best.append(time.process_time() - start)
        self.times[result] = min(best)
        write(self.file(result + ".npz"), values)

    def own(self):
        self.predict(self.file("model"), "own")

    def theirs(self):
        self.predict(str(self.work / "paddle.model"), "theirs")

    def ours(self):
        """Proa's export in real Paddle."""
        self.start()
        self.predict(str(self.work / "proa.model"), "ours")


def cause(error):
    lines = [line for line in "".join(traceback.format_exception_only(type(error), error)).strip().split("\n") if line.strip()]
    # real Paddle prints its C++ trace first and the error's summary last
    text = next((lines[i + 1] for i, line in enumerate(lines[:-1]) if "Error Message Summary" in line), lines[0])
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "one_application" not in frame.filename]
    place = f"{pathlib.Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{text[:300]} [{place}]"


def stages(side, what, work, name):
    if what == "predict":
        return ["ours"]
    return ["build", "forward", "train", "export", "own"] + (["theirs"] if side == "proa" else [])


def run_model(recipe, name, work, side, what):
    """In the forked process: runs the stages and writes one line of JSON after each, so that a crash loses only its own."""
    case = Case(recipe, name, work, side)
    with open(case.work / f"{side}.{what}.jsonl", "w") as report:
        built = True
        for stage in stages(side, what, work, name):
            entry = {"stage": stage, "outcome": "began"}
            print(json.dumps(entry), file=report, flush=True)
            start = time.process_time()
            try:
                if not built and stage != "theirs":
                    raise RuntimeError("not built")
                if not built:
                    case.start()
                getattr(case, stage)()
                entry["outcome"] = "done"
            except BaseException as error:  # SystemExit of a repository's own check is an outcome, too
                entry.update(outcome="failed", cause=cause(error))
                if os.environ.get("REFEREE_TRACE"):
                    traceback.print_exc()
                built = built and stage != "build"
            entry["seconds"], entry["times"] = time.process_time() - start, case.times
            entry["memory_kb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(json.dumps(entry), file=report, flush=True)


def wait(child, seconds):
    """The status of a child, which is killed after so many seconds."""
    end = time.time() + seconds
    while time.time() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def main():
    folder, recipe_path, work, what, side, seconds, *names = sys.argv[1:]
    work = pathlib.Path(work).resolve()
    spec = importlib.util.spec_from_file_location("recipe", recipe_path)
    recipe = importlib.util.module_from_spec(spec)
    import stand_ins
    spec.loader.exec_module(recipe)
    stand_ins.install(getattr(recipe, "ABSENT", "").split())
    os.chdir(folder)
    for path in getattr(recipe, "PATHS", ["."]):
        sys.path.insert(0, str((pathlib.Path(folder) / path).resolve()))
    sys.argv = [recipe_path]
    try:
        recipe.load()
    except BaseException as error:
        print(f"{pathlib.Path(recipe_path).stem} on {side}: {cause(error)}", flush=True)  # each model will say so
        if os.environ.get("REFEREE_TRACE"):
            traceback.print_exc()
    for name in names or list(recipe.MODELS):
        child = os.fork()
        if child == 0:
            try:
                run_model(recipe, name, work, side, what)
            finally:
                os._exit(0)
        status = wait(child, int(seconds))
        (work / name / f"{side}.{what}.status").write_text(str(status))


main()
