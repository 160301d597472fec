"""Names of 2.0 and 2.1 that 2.6.2 has no more, beside what its own code takes in their stead (parity.since_removed)."""
import ast
import decimal
import os
import tempfile
import textwrap

import numpy as np
import paddle
import paddle.static as static
from parity import array, case, fill, rand, raised, since_removed

C, J = "paddle.compat.", "paddle.jit.ProgramTranslator."


def compat(name, heir):
    return since_removed(C + name, lambda: heir)


@case(C + "to_text", C + "to_bytes", grad=False)
def text_and_bytes():
    to_text = compat("to_text", lambda v, encoding="utf-8": v.decode(encoding) if isinstance(v, bytes) else v)
    to_bytes = compat("to_bytes", lambda v, encoding="utf-8": v.encode(encoding) if isinstance(v, str) else v)
    words, coded = ["a", "é", "水"], ["a", "é"]
    return [[to_text(w.encode()) for w in words], [to_text(w) for w in words], [to_text(w.encode("latin1"), "latin1") for w in coded],
            to_text(None), to_bytes(None), to_text(True), to_text(1.5), raised(lambda: to_text(b"\xff"), UnicodeDecodeError),
            [list(to_bytes(w)) for w in words], [list(to_bytes(w.encode())) for w in words],
            [list(to_bytes(w, "latin1")) for w in coded], raised(lambda: to_bytes("水", "latin1"), UnicodeEncodeError)]


@case(C + "long_type", C + "round", C + "floor_division", C + "get_exception_message", grad=False)
def numbers_and_messages():
    def halves_up(x, d=0):
        return float(decimal.Decimal(repr(x)).quantize(decimal.Decimal(1).scaleb(-d), decimal.ROUND_HALF_UP))
    half = compat("round", halves_up)
    divided = compat("floor_division", lambda x, y: x // y)
    message = compat("get_exception_message", str)
    found = [half(x) for x in (0.5, 1.5, 2.5, -0.5, -1.5, 2.4999, -2.51, 0.0, -0.0)]
    return [compat("long_type", int).__name__, found, [str(v) for v in found], [half(x, 2) for x in (1.125, -1.125, 3.14159)],
            [divided(7, 2), divided(-7, 2), divided(7.5, 2)], raised(lambda: divided(1, 0), ZeroDivisionError),
            message(ValueError("what went wrong")), message(KeyError("k")), message(Exception())]


@case("paddle.Tensor.logsigmoid", "paddle.Tensor.sums", "paddle.Tensor.unique_with_counts")
def methods():
    T, x, other = "paddle.Tensor.", rand(3, 4), rand(3, 4)
    logsigmoid = since_removed(T + "logsigmoid", lambda: paddle.nn.functional.log_sigmoid)
    sums = since_removed(T + "sums", lambda: paddle.add_n)
    with_counts = since_removed(T + "unique_with_counts", lambda: lambda x, dtype="int32": paddle._legacy_C_ops.unique_with_counts(
        x, "dtype", {"int32": 2, "int64": 3}[dtype]))
    values = paddle.to_tensor(np.array([2, 3, 3, 1, 5, 3]))
    return logsigmoid(x), sums([x, other]), with_counts(values), with_counts(values.astype("float32"), "int64")


@case("paddle.device.is_compiled_with_npu", grad=False)
def npu():
    return [since_removed("paddle.device.is_compiled_with_npu", lambda: lambda: paddle.device.is_compiled_with_custom_device("npu"))()]


def branching(x, n):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    for i in range(n):
        y = y + x * i
    return y


def translated():
    """Paddle 2.1's translator; on real Paddle the same of what StaticFunction has."""
    class Heir:
        kept = {}

        def static(self, function):
            return self.kept.setdefault(function, paddle.jit.to_static(function, full_graph=True))

        def get_output(self, function, *args):
            return self.static(function)(*args)

        def get_func(self, function):
            return paddle.jit.dy2static.convert_to_static(function)

        def get_program(self, function, *args):
            concrete, _ = self.static(function).get_concrete_program(*args)
            return concrete.main_program, concrete.startup_program, concrete.inputs, concrete.outputs

        def get_code(self, function):
            return self.static(function).code
    return since_removed("paddle.jit.ProgramTranslator", lambda: Heir)()


@case(J + "get_output", J + "get_func", J + "get_code", grad=False)
def functions_of_a_translator():
    """get_func's code is called while a program is built."""
    translator, x = translated(), rand(3, 4)
    out = [translator.get_output(branching, sign * x, n) for sign in (1, -1) for n in (0, 2)]
    code = ast.parse(textwrap.dedent(translator.get_code(branching))).body
    defined, = [one for one in code if isinstance(one, ast.FunctionDef)]
    function = translator.get_func(branching)
    paddle.enable_static()
    try:
        main = static.Program()
        with static.program_guard(main):
            fed = static.data("x", [3, 4])
            made = function(fed, 2)
        exe = static.Executor()
        out += [exe.run(main, {"x": sign * x.numpy()}, [made])[0] for sign in (1, -1)]
    finally:
        paddle.disable_static()
    return out, defined.name, [a.arg for a in defined.args.args], not any(isinstance(n, ast.For) for n in ast.walk(defined)) or "for"


@case(J + "get_program", grad=False)
def programs_of_a_translator():
    def plain(x, y):
        return paddle.nn.functional.relu(paddle.matmul(x, y)) + 1
    x, y = rand(2, 3), rand(3, 4)
    main, startup, inputs, outputs = translated().get_program(plain, x, y)
    fed = [v for v in inputs if hasattr(v, "shape") and hasattr(v, "name")]
    paddle.enable_static()
    try:
        exe = static.Executor()
        exe.run(startup)
        ran = exe.run(main, {fed[0].name: x.numpy(), fed[1].name: y.numpy()}, [outputs[0]])
    finally:
        paddle.disable_static()
    return ran, [list(v.shape) for v in fed], [list(v.shape) for v in outputs]


class Traced:
    """TracedLayer by 2.6.2's to_static, whose programs share their parameters with the layer, too."""

    def __init__(self, net, inputs):
        spec = [static.InputSpec(one.shape, one.dtype, f"feed_{i}") for i, one in enumerate(inputs)]
        self.net = paddle.jit.to_static(net, input_spec=spec, full_graph=True)
        self.program = self.net.forward.concrete_program.main_program

    @staticmethod
    def trace(net, inputs):
        return net(*inputs), Traced(net, inputs)

    def set_strategy(self, build_strategy=None, exec_strategy=None):
        """Before the first run alone."""

    def __call__(self, inputs):
        return [self.net(*inputs).numpy()]

    def save_inference_model(self, path, feed, fetch):
        paddle.jit.save(self.net, path)


@case(*("paddle.jit.TracedLayer" + n for n in ("", ".trace", ".program", ".set_strategy", ".save_inference_model")), grad=False)
def traced_layers():
    traced_layer = since_removed("paddle.jit.TracedLayer", lambda: Traced)
    net, x = fill(paddle.nn.Sequential(paddle.nn.Linear(4, 3), paddle.nn.Tanh(), paddle.nn.Linear(3, 2))), rand(5, 4, grad=False)
    out, traced = traced_layer.trace(net, [x])
    traced.set_strategy(static.BuildStrategy(), static.ExecutionStrategy())
    found = [out, traced([x]), traced([rand(5, 4, grad=False)])]
    net[0].bias.set_value(np.full(3, 0.5, "float32"))  # parameters are shared
    found.append(traced([x]))
    program = traced.program
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "deeper", "net")
        traced.save_inference_model(path, feed=[0], fetch=[0])
        paddle.enable_static()
        try:
            with static.scope_guard(static.Scope()):
                exe = static.Executor()
                loaded, feeds, fetches = static.load_inference_model(path, exe)
                found += [exe.run(loaded, {feeds[0]: x.numpy()}, fetches), len(feeds), len(fetches)]
        finally:
            paddle.disable_static()
    kept = [var for var in program.list_vars() if var.persistable and var.name not in ("feed", "fetch")]
    return found, isinstance(program, static.Program), sorted(list(var.shape) for var in kept), [
        op.type for op in program.global_block().ops if op.type not in ("feed", "fetch", "scale", "assign")]


def loader_class():
    """DataLoader of 2.0, which 2.6.2 keeps further in."""
    return since_removed("paddle.io.DataLoader", lambda: paddle.base.reader.DataLoader)


@case("paddle.io.DataLoader.from_generator", grad=False)
def loaders_of_generators():
    """Eagerly, and in programs: iterable, and not."""
    DataLoader, x, found = loader_class(), array(7, 3).astype("float32"), []

    def samples():
        for i, row in enumerate(x):
            yield row, np.array([i])

    def lists():
        for i in (0, 3, 5):
            yield [(row, np.array([i])) for row in x[i:i + 2]]

    def batches():
        for i in (0, 4):
            yield x[i:i + 3], np.arange(3).reshape(3, 1)
    for drop_last in (True, False):
        loader = DataLoader.from_generator(capacity=2, return_list=True)
        loader.set_sample_generator(samples, batch_size=3, drop_last=drop_last, places=paddle.CPUPlace())
        found.append([[one.numpy() for one in batch] for batch in loader()])
    for setter, reader in (("set_sample_list_generator", lists), ("set_batch_generator", batches)):
        loader = DataLoader.from_generator(capacity=2, return_list=True)
        getattr(loader, setter)(reader, places=paddle.CPUPlace())
        found.append([[one.numpy() for one in batch] for batch in loader])
    paddle.enable_static()
    try:
        for iterable in (True, False):
            main = static.Program()
            with static.program_guard(main):
                fed, label = static.data("fed", [None, 3]), static.data("label", [None, 1], "int64")
                loader = DataLoader.from_generator([fed, label], capacity=2, iterable=iterable)
                made = (fed * 2).sum(axis=1, keepdim=True) + label.astype("float32")
            loader.set_batch_generator(batches, places=paddle.CPUPlace())
            exe = static.Executor(paddle.CPUPlace())
            if iterable:
                found.append([exe.run(main, feed, [made])[0] for feed in loader()])
                continue
            for _ in range(2):
                loader.start()
                try:
                    while True:
                        found.append(exe.run(main, fetch_list=[made])[0])
                except paddle.framework.core.EOFException:
                    loader.reset()
    finally:
        paddle.disable_static()
    return found


@case("paddle.io.DataLoader.from_dataset", grad=False)
def loaders_of_data_sets():
    paddle.enable_static()
    try:
        with static.program_guard(static.Program()), tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lines")
            with open(path, "w") as file:
                file.writelines(f"2 {i} {i + 0.5} 1 {i}\n" for i in range(5))
            data = paddle.distributed.QueueDataset()
            data.init(batch_size=2, thread_num=1, use_var=[static.data("x", [None, 2]), static.data("y", [None, 1], "int64")])
            data.set_filelist([path])
            batches = [loader_class().from_dataset(data, static.cpu_places(1), drop_last) for drop_last in (True, False)]
            return [[{name: np.array(value) for name, value in sorted(feed[0].items() if isinstance(feed, list) else feed.items())}
                     for feed in loader] for loader in batches]
    finally:
        paddle.disable_static()


@case("paddle.static.CompiledProgram.with_data_parallel",
      *("paddle.static.ParallelExecutor" + n for n in ("", ".run", ".device_count", ".drop_local_exe_scopes")), grad=False)
def programs_in_parallel():
    """On one device both are the program itself: three steps of training, and the loss of each."""
    paddle.enable_static()
    try:
        found, x, y, w = [], array(6, 3).astype("float32"), array(6, 2).astype("float32"), array(3, 2).astype("float32")
        for which in range(2):
            main, startup = static.Program(), static.Program()
            with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
                fed, want = static.data("x", [None, 3]), static.data("y", [None, 2])
                made = static.nn.fc(fed, 2, weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(w)))
                loss = ((made - want) ** 2).mean()
                paddle.optimizer.SGD(0.25).minimize(loss)
                exe = static.Executor(paddle.CPUPlace())
                exe.run(startup)
                if which:
                    run, count = parallel_executor(exe, main, loss)
                    found.append(count)
                else:
                    compiled = since_removed("paddle.static.CompiledProgram", lambda: static.CompiledProgram)(main)
                    if hasattr(compiled, "with_data_parallel"):
                        compiled = compiled.with_data_parallel(loss_name=loss.name, places=static.cpu_places(1))

                    def run(feed, fetch, compiled=compiled, exe=exe):
                        return exe.run(compiled, feed, fetch)
                found += [run({"x": x, "y": y}, [loss.name])[0] for _ in range(3)]
        return found
    finally:
        paddle.disable_static()


def parallel_executor(exe, main, loss):
    """Its run(feed, fetch) and number of devices."""
    def heir(**_):
        return None
    made = since_removed("paddle.static.ParallelExecutor", lambda: heir)(use_cuda=False, loss_name=loss.name, main_program=main)
    if made is None:
        return lambda feed, fetch: exe.run(static.CompiledProgram(main), feed, fetch), len(static.cpu_places(1))
    made.drop_local_exe_scopes()
    return lambda feed, fetch: made.run(fetch, feed), made.device_count
