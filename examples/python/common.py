"""Weights and data that do not depend on a framework's random numbers."""
import pathlib

import numpy as np

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


def seeded(layer, seed=0, scale=0.5):
    """Sets every parameter of a layer from NumPy: matrices by their fan-in, scales near one, biases near zero."""
    rng = np.random.RandomState(seed)
    for p in layer.parameters():
        shape = [int(n) for n in p.shape]
        fan_in = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        if len(shape) == 1:
            mean = float(np.mean(p.numpy())) > 0.5
            value = rng.uniform(-0.1, 0.1, shape) + (1.0 if mean else 0.0)
        else:
            value = rng.uniform(-1, 1, shape) * scale * (6.0 / fan_in) ** 0.5
        p.set_value(value.astype("float32"))
    return layer


def fill(program, seed=0):
    """Sets a static program's parameters, in the global scope, from NumPy."""
    import paddle
    rng = np.random.RandomState(seed)
    for p in sorted(program.all_parameters(), key=lambda p: p.name):
        shape = [int(n) for n in p.shape]
        holder = paddle.static.global_scope().find_var(p.name).get_tensor()
        old = np.array(holder)
        if len(shape) < 2:
            value = old + rng.uniform(-0.1, 0.1, shape)
        else:
            fan_in = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
            value = rng.uniform(-1, 1, shape) * (3.0 / fan_in) ** 0.5
        holder.set(value.astype(old.dtype), paddle.CPUPlace())


def digits(size=None):
    """The 8 × 8 digits as float32 in [0, 1], [n, 1, 8, 8], and int64 labels [n, 1]."""
    rows = np.loadtxt(DATA / "digits_train.csv", dtype="float32", delimiter=",", skiprows=1)
    x, y = (rows[:, :-1] / 16.0).reshape(-1, 1, 8, 8), rows[:, -1:].astype("int64")
    return (x, y) if size is None else (x[:size], y[:size])


def say(name, *values):
    """One line: a name and the numbers of values, which the test compares."""
    flat = [x for v in values for x in np.asarray(v, dtype="float64").ravel()]
    print(name, *(f"{x:.6f}" for x in flat), flush=True)
