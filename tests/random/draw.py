"""Draws programs: lines of Paddle from the templates of ops.txt, each tried eagerly when it is drawn, so that a program runs.
Runs with the `paddle` that is installed."""
import pathlib
import random
import re

import numpy as np
import paddle



def lines_of(name):
    text = (pathlib.Path(__file__).parent / name).read_text()
    return [line for line in text.splitlines() if line and line[0] != "#"]


OPS = lines_of("ops.txt")
KINDS = {"f": "float", "i": "int", "b": "bool", "c": "complex"}
LARGEST = 600           # elements of a tensor
BOUND = 1e4             # of values, so that errors stay comparable
FLOATS = {"float64": ["float64"] * 3, "float32": ["float32"] * 3, "mixed": ["float32", "float64", "float32"],
          "complex": ["float64", "float64", "complex128"], "complex64": ["float32", "complex64", "complex64"],
          "float16": ["float16"] * 3, "bfloat16": ["bfloat16"] * 3}


class NoFit(Exception):
    """A template that the tensors at hand cannot fill."""


def dtype_of(t):
    return str(t.dtype).rpartition(".")[2]


class Filling:
    """One template's holes, filled in order."""

    def __init__(self, rng, env):
        self.rng, self.env, self.picked, self.axis, self.key = rng, env, [], None, None

    def tensors(self, fits):
        names = [n for n, t in self.env.items() if fits(t)]
        if not names:
            raise NoFit
        # those made last are the likelier ones, so that programs are deep
        name = names[min(int(len(names) * self.rng.random() ** 0.6), len(names) - 1)]
        self.picked.append(name)
        return name

    def pick(self, kind, rank, exact):
        return self.tensors(lambda t: (kind == "a" or dtype_of(t).startswith(("bfloat", "float") if kind == "f" else KINDS[kind]))
                            and (t.ndim == rank if exact else t.ndim >= rank))

    @property
    def first(self):
        return self.env[self.picked[0]]

    def same(self):
        x = self.first
        return self.tensors(lambda t: t.shape == x.shape and t.dtype == x.dtype)

    def broadcasting(self):
        x = self.first

        def fits(t):
            if t.dtype != x.dtype:
                return False
            return all(a == b or 1 in (a, b) for a, b in zip(t.shape[::-1], x.shape[::-1]))
        return self.tensors(fits)

    def an_axis(self, more=0):
        rank = self.first.ndim + more
        if rank == 0:
            raise NoFit
        self.axis = self.rng.randrange(-rank, rank)
        return self.axis

    def axes(self, some):
        rank = self.first.ndim
        if rank == 0:
            return [] if some else None
        if not some and self.rng.random() < 0.3:
            return None
        chosen = self.rng.sample(range(rank), self.rng.randint(1, rank))
        chosen = [a - rank if self.rng.random() < 0.5 else a for a in chosen]
        return chosen[0] if not some and self.rng.random() < 0.5 else chosen

    def a_shape(self):
        n, shape = int(np.prod(self.first.shape)), []
        while self.rng.random() < 0.7 and len(shape) < 4:
            parts = [d for d in range(1, n + 1) if n % d == 0] if n else [0]
            shape.append(self.rng.choice(parts))
            n = n // shape[-1] if shape[-1] else 0
        if n != 1 or self.rng.random() < 0.2:
            shape.append(n)
        if n and shape and self.rng.random() < 0.3:
            shape[self.rng.randrange(len(shape))] = -1
        return shape

    def a_key(self):
        rng, parts, shape = self.rng, [], self.first.shape
        for n in shape[:rng.randint(0, len(shape))]:
            parts.append(rng.choice([
                str(rng.randrange(-n, n)) if n else ":", ":", f"{rng.choice(['', 0, -1, -2])}:{rng.choice(['', 1, 2, -1])}",
                f"::{rng.choice([1, 2, -1, -2])}", f"[{rng.randrange(-n, n)}, {rng.randrange(-n, n)}]" if n else ":", "None",
                f"paddle.to_tensor([{rng.randrange(-n, n)}])" if n else ":"]))
        if any(part[0] in "[p" for part in parts):  # Paddle 2.6.2 applies an array to the axis that None adds
            parts = [":" if part == "None" else part for part in parts]
        if rng.random() < 0.15:
            parts.append("...")
        if not parts:
            return f"{self.picked[0]} > {rng.choice([0, 5])}" if shape and not self.is_complex() else "..."
        return ", ".join(parts)

    def is_complex(self):
        return dtype_of(self.first).startswith("complex")

    def hole(self, match):
        rng, text = self.rng, match.group(1)
        found = re.fullmatch(r"(=?)([fibca])(\d?)", text)
        if found:
            return self.pick(found.group(2), int(found.group(3) or 0), bool(found.group(1)))
        if text.isdigit():
            return self.picked[int(text)]
        if text.startswith("or "):
            return rng.choice(text[3:].split("|"))
        if text in ("key", "samekey"):
            self.key = self.a_key() if text == "key" else self.key
            return self.key
        if text == "sameax":
            return str(self.axis)
        if text == "at0":
            return str(rng.randrange(self.first.shape[0]))
        if text == "at":
            return str(rng.randrange(max(1, min(self.first.shape, default=1))))
        made = {"s": self.same, "y": self.broadcasting, "ax": self.an_axis, "ax1": lambda: self.an_axis(1),
                "axs": lambda: self.axes(False), "axs1": lambda: self.axes(True), "shape": self.a_shape,
                "perm": lambda: rng.sample(range(self.first.ndim), self.first.ndim), "k": lambda: rng.randint(1, 3),
                "z": lambda: rng.randint(-2, 2), "v": lambda: round(rng.uniform(-2, 2), 2), "u": lambda: round(rng.uniform(0.1, 2), 2),
                "t": lambda: rng.random() < 0.5}[text]
        return str(made())

    def fill(self, template):
        return re.sub(r"\{(=?[a-z]*\d?(?: [^}]*)?)\}", self.hole, template)


def inputs_of(rng, kind):
    """Arrays by name: floating ones that often fit one another, one of integers, one of booleans."""
    dims, made = [rng.randint(1, 4) for _ in range(4)], {}
    numbers = np.random.RandomState(rng.randrange(2 ** 31))

    def shape():
        if made and rng.random() < 0.5:
            return rng.choice(list(made.values()))[0].shape
        rank = rng.choice([0, 1, 2, 2, 3, 3, 4])
        return tuple(dims[4 - rank:] if rng.random() < 0.6 else [rng.choice(dims + [1]) for _ in range(rank)])
    for i, dtype in enumerate(FLOATS[kind]):
        values = numbers.uniform(-2, 2, shape())
        if dtype.startswith("complex"):
            values = values + 1j * numbers.uniform(-2, 2, values.shape)
        made[f"x{i}"] = np.asarray(values), dtype
    made["n"] = np.asarray(numbers.randint(-3, 6, shape())), rng.choice(["int64", "int32"])
    made["p"] = np.asarray(numbers.rand(*shape()) > 0.5), "bool"
    return made


def tensors_of(inputs, grad=True):
    made = {}
    for name, (values, dtype) in inputs.items():
        held = "float32" if "float16" in dtype else dtype
        made[name] = paddle.to_tensor(values.astype(held)).astype(dtype)
        made[name].stop_gradient = not (grad and ("float" in dtype or "complex" in dtype))
    return made


def calm(t):
    if not isinstance(t, paddle.Tensor) or not 0 < int(np.prod(t.shape)) <= LARGEST or t.ndim > 6:
        return False
    if dtype_of(t) in ("bool", "uint8"):
        return True
    values = np.asarray(t.detach().astype("float64") if "float16" in dtype_of(t) else t.detach().numpy())
    return bool(np.isfinite(values).all() and np.abs(values).max() < BOUND)


class Program:
    """Lines, inputs, and the names of what is returned."""

    def __init__(self, seed, kind, steps=12):
        self.rng, self.kind = random.Random(f"{seed} {kind}"), kind
        self.inputs, self.lines, self.refused = inputs_of(self.rng, kind), [], []
        env = self.run([])
        for _ in range(self.rng.randint(3, steps)):
            for _ in range(30):
                line = self.draw(env)
                if line:
                    break
            else:
                break
            self.lines.append(line)
            env = self.run(self.lines) if ";" in line else env
        made = [n for n in env if n.startswith("y")]
        last = made[-3:] + [n for n in dict.fromkeys(re.findall(r"\b(y\d+)\b", " ".join(l for l in self.lines if ";" in l)))]
        self.outputs = [n for n in dict.fromkeys(last)] or ["x0"]

    @classmethod
    def written(cls, line):
        """A program of found.txt."""
        shapes, *lines = [part.strip() for part in line.split("|")]
        made, numbers = cls.__new__(cls), np.random.RandomState(0)
        made.lines, made.refused, made.inputs = lines, [], {}
        for i, shape in enumerate(shapes.split()):
            dims = [] if shape == "-" else [int(n) for n in shape.split(",")]
            made.inputs[f"x{i}"] = np.asarray(numbers.uniform(-2, 2, dims)), "float64"
        made.outputs = [n for n in made.run(lines) if n.startswith("y")]
        return made

    def run(self, lines):
        env = tensors_of(self.inputs)
        for line in lines:
            exec(line.rstrip(";"), {"paddle": paddle, "F": paddle.nn.functional}, env)
        return env

    def draw(self, env):
        """A line that works, run in env; None if this draw was none."""
        try:
            text = Filling(self.rng, env).fill(self.rng.choice(OPS))
        except NoFit:
            return None
        writes = text.endswith(";")
        line = text if writes else f"y{len(self.lines)} = {text}"
        try:
            if writes:
                after = self.run([*self.lines, line])
                return line if all(calm(t) for t in after.values() if isinstance(t, paddle.Tensor)) else None
            exec(line, {"paddle": paddle, "F": paddle.nn.functional}, env)
        except Exception as error:  # whatever the framework raises: it refuses these arguments
            self.refused.append((list(self.lines), line, f"{type(error).__name__}: {error}"))
            return None
        name = f"y{len(self.lines)}"
        if calm(env[name]):
            return line
        del env[name]
        return None

    def source(self):
        names = ", ".join(self.inputs)
        body = "\n".join(f"    {line.rstrip(';')}" for line in self.lines)
        return (f"import paddle\nF = paddle.nn.functional\n\n\ndef program({names}):\n{body}\n"
                f"    return {', '.join(self.outputs)}{',' if len(self.outputs) == 1 else ''}\n")

    def writes(self):
        return any(line.endswith(";") for line in self.lines)
