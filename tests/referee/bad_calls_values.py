"""Values of bad calls as JSON, so that real Paddle and Proa are called alike: specs, and what makes values of them. A
spec is a number, string, bool or None, or a list that starts with what it is: ["tensor", shape, dtype], ["list", …]."""
import itertools
import zlib

_numbers = itertools.count()
FED = []  # (name, shape, dtype) of the variables that build made for a program

TENSOR = ["tensor", [2, 3], "float32"]
SQUARE = ["tensor", [3, 3], "float32"]
INDEX = ["tensor", [2], "int64"]
IMAGE = ["tensor", [1, 4, 6, 6], "float32"]
SERIES = ["tensor", [1, 4, 6], "float32"]
VOLUME = ["tensor", [1, 4, 3, 6, 6], "float32"]
MASK = ["tensor", [2, 3], "bool"]
WHOLE = ["tensor", [2, 3], "int64"]
SHAPE = ["list", 2, 3]
LINEAR = ["layer", 3, 3]

# Candidates for a required parameter of unknown kind, the likely first.
POOL = [TENSOR, SQUARE, IMAGE, WHOLE, 2, SHAPE, INDEX, SERIES, ["list", TENSOR, TENSOR], VOLUME, MASK, 0.5, "float32",
        ["tensor", [3], "float32"], ["tensor", [2, 3, 3], "float32"], ["tensor", [2, 3], "complex64"], LINEAR,
        ["tensor", [2, 1], "int64"], ["list", 1, 0], ["parameters"], ["array", [4, 4, 3], "uint8"], ["function"],
        ["tensor", [1], "float32"], ["list", 1], True]

# Usual values of parameters by name.
NAMED = {
    "x": TENSOR, "y": TENSOR, "input": TENSOR, "other": TENSOR, "label": TENSOR, "value": TENSOR, "axis": 0, "dim": 0,
    "shape": SHAPE, "dtype": "float32", "index": INDEX, "num_classes": 3, "kernel_size": 2, "in_channels": 4,
    "out_channels": 4, "num_features": 4, "in_features": 3, "out_features": 3, "num_channels": 4, "repeats": 2,
    "parameters": ["parameters"], "learning_rate": 0.1, "padding": 1, "stride": 1, "axes": ["list", 0],
    "starts": ["list", 0], "ends": ["list", 1], "sections": 1, "k": 1, "n": 2, "fill_value": 1.0, "perm": ["list", 1, 0],
    "mask": MASK, "condition": MASK, "num_groups": 2, "normalized_shape": ["list", 3], "input_size": 3, "hidden_size": 4,
    "num_embeddings": 5, "embedding_dim": 3, "p": 0.5, "epsilon": 1e-5, "min": 0.0, "max": 1.0, "layer": LINEAR,
    "img": ["array", [4, 4, 3], "uint8"], "size": 2, "scale": 1.0, "value_range": ["list", 0, 1], "upscale_factor": 2,
    "norm_shape": ["list", 3], "output_size": 2, "groups": 2, "loc": 0.0, "keys": ["list", "image"], "start": 0, "end": 4,
    "step": 1, "stop": 4, "num": 4, "low": 0, "high": 4, "seed": 1, "std": 1.0, "mean": 0.0, "d_model": 4, "nhead": 2,
    "embed_dim": 4, "num_heads": 2, "dim_feedforward": 8, "ignore_index": -100, "data_format": "NCHW", "reduction": "mean",
    "name": "named", "keepdim": True, "path": "no_such_file", "step_size": 2, "gamma": 0.5, "T_max": 4,
    "weight": TENSOR, "bias": ["tensor", [3], "float32"],
}
DTYPES = ["bool", "int32", "int64", "uint8", "float64", "float16", "complex64", "int8", "bfloat16", "float32"]
RANKS = [[], [5], [0], [1, 2, 3, 4], [2] * 7, [7, 5], [1], [3, 2, 2], [0, 3]]


class Thing:
    """An object of no kind that any function knows."""


def _array(shape, dtype, text):
    import numpy
    rng = numpy.random.default_rng(zlib.crc32(text.encode()))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return numpy.asarray(rng.integers(0, 2, shape)).astype(dtype)
    values = numpy.asarray(rng.uniform(0.1, 0.9, shape))
    return values.astype("float32" if dtype in ("float16", "bfloat16") else dtype)


def resolve(paddle, path):
    """The object of a public name, "paddle.nn.Linear"."""
    import importlib
    found, at = paddle, paddle.__name__
    for part in path.split(".")[1:]:
        at += "." + part
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(at)
    return found


def _fed(shape, dtype):
    """The array that is fed for a variable; bfloat16 as the upper halves of float32, in uint16."""
    values = _array(shape, dtype, repr(["tensor", shape, dtype]))
    return (values.view("uint32") >> 16).astype("uint16") if dtype == "bfloat16" else values.astype(dtype)


def feed():
    """{name: array} of the variables that were built."""
    return {name: _fed(shape, dtype) for name, shape, dtype in FED}


def build(paddle, spec):
    """The value that a spec stands for."""
    if not isinstance(spec, list):
        return spec
    kind, rest = spec[0], spec[1:]
    if kind == "list":
        return [build(paddle, s) for s in rest]
    if kind == "tuple":
        return tuple(build(paddle, s) for s in rest)
    if kind == "tensor" and not paddle.in_dynamic_mode():
        FED.append((f"data_{next(_numbers)}", *rest))
        return paddle.static.data(*FED[-1])
    if kind == "tensor":
        t = paddle.to_tensor(_array(rest[0], rest[1], repr(spec)))
        return t.astype(rest[1]) if rest[1] in ("float16", "bfloat16") else t
    if kind == "array":
        return _array(rest[0], rest[1], repr(spec))
    if kind == "layer":
        return paddle.nn.Linear(*rest)
    if kind == "parameters":
        return paddle.nn.Linear(3, 3).parameters()
    if kind == "new":
        path, args, keywords = rest
        return resolve(paddle, path)(*[build(paddle, a) for a in args],
                                     **{k: build(paddle, v) for k, v in keywords.items()})
    return {"object": Thing, "dict": dict, "function": lambda: (lambda *a, **k: a[0] if a else None),
            "bytes": lambda: b"bytes", "class": lambda: Thing, "nan": lambda: float("nan"),
            "complex": lambda: 1 + 2j, "dtype": lambda: paddle.float32}[kind]()
