"""Family `ops`: some 570 rows of ops on shapes that nobody has tuned them for, one a row of ops.txt, forward and, where its line says so,
forward and backward together. Over an adapter of frameworks.py."""
import functools
import itertools
import pathlib
import re

import numpy as np
from common import Row, Unit
from frameworks import integers, random

TABLE = pathlib.Path(__file__).with_name("ops.txt")
BRACES = re.compile(r"\{(.*?)\}")


def filled(text):
    """The texts that a text with braces stands for."""
    lists = [entries.split("; " if ";" in entries else None) for entries in BRACES.findall(text)]
    return [BRACES.sub(lambda _, at=iter(entries): next(at), text) for entries in itertools.product(*lists)]


def lines():
    """(unit, whether also backward, expression in Paddle's words, in PyTorch's) of the table's rows."""
    unit = None
    for line in TABLE.read_text().splitlines():
        if line.startswith("## "):
            unit = line[3:]
        elif line and not line.startswith("#"):
            ours, _, theirs = line.removeprefix("+ ").partition(" | ")
            for pair in zip(filled(ours), filled(theirs or ours), strict=True):
                yield unit, line.startswith("+ "), *pair


@functools.cache
def arrays(tiny):
    """Named arrays: floating ones are leaves of a backward row."""
    n, c, side = (8, 32, 16) if tiny else (1024, 32, 64)
    far = 24 if tiny else 20000
    positive = lambda *shape: np.abs(random(*shape)) + np.float32(0.1)
    square = random(16, 16) if tiny else random(200, 200)
    return {
        "x": random(n, n), "y": random(n, n), "p": positive(n, n), "row": positive(n), "column": positive(n, 1), "small": positive(8),
        "one": random(1, n), "tiny": random(16, 16), "odd": random(3, 513, 61) if tiny else random(37, 513, 61), "square": square,
        "definite": square @ square.T + 200 * np.eye(len(square), dtype=np.float32), "prime": random(4 if tiny else 64, 1009),
        "unit": np.clip(positive(n, n), 0, 1), "images": random(1 if tiny else 8, c, side, side), "signals": random(2 if tiny else 16, c, 1000),
        "volumes": random(1, 8, 8, 8, 8) if tiny else random(2, 8, 16, 32, 32), "sequence": random(*((2, 8, 256) if tiny else (32, 128, 256))),
        "grid": 0.3 * random(1 if tiny else 8, side, side, 2), "table": random(5000, 32), "rows": random(far, 32), "bits": (random(n, n) > 0) * np.float32(1),
        "sorted_row": np.sort(random(n)), "w1": random(64, c, 1, 1), "w3": random(64, c, 3, 3), "w5": random(16, c, 5, 5), "d3": random(c, 1, 3, 3),
        "d5": random(c, 1, 5, 5), "d7": random(c, 1, 7, 7), "g3": random(64, 8, 3, 3), "t4": random(c, 16, 4, 4), "s5": random(64, c, 5),
        "s7": random(c, 1, 7), "v3": random(16, 8, 3, 3, 3), "x64": random(n, n).astype("float64"), "p64": positive(n, n).astype("float64"),
        "ids": integers(5000, far), "some": integers(n, n // 2), "classes": integers(n, n), "integers": integers(100, n, n),
        "along0": integers(n, n // 4, n), "along1": integers(n, n, n // 4), "mask": random(n, n) > 0}


HALVES = {"pbf16": "bfloat16", "pf16": "float16"}


def named(fw, text, tiny, grad):
    """The tensors that an expression names."""
    names, all_arrays = set(re.findall(r"[a-z]\w*", text)), arrays(tiny)
    made = {name: fw.tensor(all_arrays[name], grad=grad and all_arrays[name].dtype.kind == "f") for name in names & all_arrays.keys()}
    return made | {name: fw.cast(fw.tensor(all_arrays["p"]), HALVES[name]) for name in names & HALVES.keys()}


def row(name, grad, ours, theirs, tiny):
    def make(fw):
        text = theirs if fw.name == "torch" else ours
        tensors = named(fw, text, tiny, grad)
        function = eval(f"lambda: {text}", {"P": fw.t, "F": fw.F, "fw": fw, **tensors})
        if not grad:
            return function
        with fw.no_grad():
            seed = fw.t.ones_like(function())
        leaves = [t for t in tensors.values() if "float" in str(t.dtype)]

        def step():
            fw.backward(function(), seed)
            for leaf in leaves:
                fw.clear(leaf)
        return step
    return Row(name, make)


def units(tiny=False):
    made = {}
    for unit, both, ours, theirs in lines():
        rows = made.setdefault(unit, [])
        rows.append(row(ours, False, ours, theirs, tiny))
        if both and not HALVES.keys() & set(re.findall(r"\w+", ours)):
            rows.append(row(f"{ours} f+b", True, ours, theirs, tiny))
    return [Unit(name, tuple(rows), seconds=0.03, skip=("paddle",)) for name, rows in made.items()]
