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


@case("paddle.static.InputSpec", "paddle.static.InputSpec.from_tensor", "paddle.static.InputSpec.from_numpy",
      "paddle.static.InputSpec.batch", "paddle.static.InputSpec.unbatch")
def input_specs():
    x = paddle.ones([2, 3], "int64")
    x.name = "given"
    specs = [InputSpec([None, 3]), InputSpec.from_tensor(x), InputSpec.from_tensor(x, name="other"),
             InputSpec.from_numpy(np.zeros([4], "float32")), InputSpec([3]).batch(2), InputSpec([3, 4]).unbatch()]
    return [[list(s.shape), str(s.dtype).rpartition(".")[2], s.name] for s in specs], rand(2)
