"""paddle.jit: conversion, saving and loading behave as Paddle's."""
import os
import tempfile

import numpy as np
import paddle
from paddle import nn
from paddle.static import InputSpec

from parity import case, fill, rand

J = "paddle.jit."


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x):
        y = nn.functional.relu(self.fc(x))
        if y.mean() > 0:
            y = y * 2
        else:
            y = y - 1
        return self.out(y)


def saved(net, **options):
    path = os.path.join(tempfile.mkdtemp(), "net")
    paddle.jit.save(net, path, **options)
    return path


@case(J + "to_static", "paddle.static.InputSpec")
def to_static_functions():
    @paddle.jit.to_static
    def branch(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    def loop(x, n):
        total = x
        for i in range(n):
            total = total * x + i
        return total
    x = rand(3, 4)
    converted = paddle.jit.to_static(loop, full_graph=True)
    return branch(x), branch(-x), converted(x, 3), converted(x, 1)


@case(J + "to_static", grad=False)
def to_static_layer():
    net = paddle.jit.to_static(fill(Net()), full_graph=True)
    x = rand(5, 4)
    out = net(x)
    out.sum().backward()
    return out, [p.grad for p in net.parameters()], x.grad


@case(J + "to_static", grad=False)
def to_static_training():
    net = paddle.jit.to_static(fill(Net()), input_spec=[InputSpec([None, 4])], full_graph=True)
    optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
    losses = []
    for n in (2, 3, 2):
        loss = (net(rand(n, 4)) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss)
    return losses, net.parameters()


@case(J + "not_to_static", J + "enable_to_static", J + "ignore_module", J + "set_code_level", J + "set_verbosity",
      grad=False)
def switches():
    @paddle.jit.not_to_static
    def plain(x):
        return x + 1
    paddle.jit.set_code_level(-1)
    paddle.jit.set_verbosity(0)
    paddle.jit.ignore_module([np])
    seen = []

    def fn(x):
        seen.append(1)
        return plain(x)
    converted = paddle.jit.to_static(fn, full_graph=True)
    x = rand(2)
    paddle.jit.enable_to_static(False)
    out = converted(x), converted(x)
    paddle.jit.enable_to_static(True)
    return out, len(seen), plain(x)


@case(J + "save", J + "load", J + "TranslatedLayer", J + "TranslatedLayer.eval", grad=False)
def save_and_load():
    class Plain(nn.Layer):
        def __init__(self):
            super().__init__()
            self.net, self.drop = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)), nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(self.net(x))
    net = fill(Plain())
    path = saved(net, input_spec=[InputSpec([None, 4], name="x")])
    loaded = paddle.jit.load(path)
    loaded.eval()
    x = rand(3, 4)
    return (loaded(x), sorted(os.listdir(os.path.dirname(path))), sorted(loaded.state_dict()), loaded.training,
            [list(p.shape) for p in loaded.parameters()], isinstance(loaded, paddle.jit.TranslatedLayer),
            sorted(paddle.load(path)))


@case(J + "save", J + "load", grad=False)
def save_layers_and_functions():
    path = saved(nn.Linear(2, 2), input_spec=[paddle.ones([1, 2])])
    with_function = os.path.join(tempfile.mkdtemp(), "function")

    def line(x):
        return x * 2 + 1
    paddle.jit.save(paddle.jit.to_static(line, input_spec=[InputSpec([None])], full_graph=True), with_function)
    return sorted(os.listdir(os.path.dirname(path))), paddle.jit.load(with_function)(rand(3))


@case(J + "TranslatedLayer.train", grad=False)
def loaded_modes():
    loaded = paddle.jit.load(saved(fill(nn.Linear(3, 2)), input_spec=[InputSpec([None, 3])]))
    first = loaded.training
    loaded.train()
    second = loaded.training
    loaded.eval()
    return first, second, loaded.training


@case(J + "load", J + "TranslatedLayer.parameters", grad=False)
def names_of_what_is_loaded_twice():
    with paddle.utils.unique_name.guard():
        path = saved(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1D(2)), input_spec=[InputSpec([None, 3])])
        first, second = paddle.jit.load(path), paddle.jit.load(path)
    return [[p.name for p in layer.parameters() + layer.buffers()] for layer in (first, second)]


@case("paddle.static.InputSpec", "paddle.static.InputSpec.from_tensor", "paddle.static.InputSpec.from_numpy",
      "paddle.static.InputSpec.batch", "paddle.static.InputSpec.unbatch")
def input_specs():
    x = paddle.ones([2, 3], "int64")
    x.name = "given"
    specs = [InputSpec([None, 3]), InputSpec.from_tensor(x), InputSpec.from_tensor(x, name="other"),
             InputSpec.from_numpy(np.zeros([4], "float32")), InputSpec([3]).batch(2), InputSpec([3, 4]).unbatch()]
    return [[list(s.shape), str(s.dtype).rpartition(".")[2], s.name] for s in specs], rand(2)


@case(J + "TranslatedLayer.program", J + "load", grad=False)
def loaded_program():
    loaded = paddle.jit.load(saved(fill(nn.Sequential(nn.Linear(4, 3), nn.Tanh())), input_spec=[InputSpec([None, 4], name="x")]))
    program = loaded.program()
    # Paddle's clone keeps what feeds and fetches; Proa's programs have no such ops
    types = [op.type for op in program.global_block().ops if op.type not in ("feed", "fetch", "scale", "assign")]
    return isinstance(program, paddle.static.Program), types, program.num_blocks


@case(J + "ProgramTranslator", J + "ProgramTranslator.get_instance", J + "ProgramTranslator.enable",
      J + "ProgramTranslator.reset", grad=False)
def translator():
    kind = getattr(paddle.jit, "ProgramTranslator", None)  # 2.1's name; 2.6.2 has it further in
    if kind is None:
        from paddle.jit.dy2static.program_translator import ProgramTranslator as kind
    seen = []

    @paddle.jit.to_static
    def double(x):
        seen.append(1)
        return x * 2
    one, x = kind.get_instance(), rand(2)
    one.enable(False)
    off = [double(x), double(x)]
    counted = len(seen)
    one.enable(True)
    kind.reset()
    return off, counted, kind.get_instance() is kind()


@case(J + "to_static", "paddle.static.nn.cond", grad=False)
def cond_in_a_converted_function():
    """PaddlePaddle/Paddle#78739."""
    def pick(x):
        return paddle.static.nn.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1)

    def nested(x, y):
        return paddle.static.nn.cond(x.mean() > y.mean(), lambda: paddle.static.nn.cond(
            x.max() > 1, lambda: [x + y, x * y], lambda: [x - y, x]), lambda: [y, y * 3])
    one, two = paddle.jit.to_static(pick, full_graph=True), paddle.jit.to_static(nested, full_graph=True)
    out = []
    for sign in (1, -1):
        x, y = rand(3, low=0.5) * sign, rand(3)
        x.stop_gradient = False
        made = one(x)
        made.sum().backward()
        out += [made, *two(x, y)]
    return out


class OfDicts(paddle.nn.Layer):
    def forward(self, feeds):
        return {"z": feeds["b"] * 2, "a": feeds["a"] + 1, "m": [feeds["b"] - 5, {"q": feeds["a"] * 7, "c": feeds["b"]}]}


@case("paddle.jit.save", "paddle.jit.load")
def dicts_are_fed_and_fetched_by_key():
    """Not in the order in which the dict was made, though the caller's dict keeps that."""
    folder = tempfile.mkdtemp()
    specs = [{"b": InputSpec([None], name="b"), "a": InputSpec([None], name="a")}]
    net = paddle.jit.to_static(OfDicts(), input_spec=specs, full_graph=True)
    b, a = paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([10.0, 20.0])
    made = net({"b": b, "a": a})
    paddle.jit.save(net, folder + "/net")
    return [list(made), list(made["m"][1]), made["z"], made["m"][1]["q"], paddle.jit.load(folder + "/net")(a, b)]


@case(J + "save", J + "load", "paddle.static.load_inference_model", grad=False)
def loaded_for_other_lengths():
    """A model that was saved with the lengths of a call takes others when it is loaded."""
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Flatten(), nn.Linear(6, 2))
    fill(net)
    net = paddle.jit.to_static(net)
    net(rand(8, 4))
    net.eval()
    path = saved(net)
    loaded = paddle.jit.load(path)
    seen = [loaded(rand(n, 4)) for n in (2, 8, 3)]
    paddle.enable_static()
    try:
        exe = paddle.static.Executor()
        program, feeds, fetches = paddle.static.load_inference_model(path, exe)
        seen += [exe.run(program, {feeds[0]: np.ones((n, 4), "float32")}, fetches)[0] for n in (8, 2)]
    finally:
        paddle.disable_static()
    return seen
