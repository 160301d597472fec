"""Parity cases: the same function runs on real Paddle and on Proa, and the outcomes agree.

A case module (tests/parity/cases/*.py) says `import paddle` and marks functions with @case. Inputs come from
rand/ints/bools, which give both sides the same values; floating inputs want gradients, and the gradient of a
fixed weighted sum of the floating outputs is compared too. Needs NumPy and the `paddle` that is installed.
"""
import os
import pathlib
import pickle
import pkgutil
import zlib

import numpy as np
import paddle

HERE = pathlib.Path(__file__).resolve().parent
CASES = []
_state = {"rng": None, "leaves": []}


class Case:
    def __init__(self, fn, names, tol, grad):
        self.fn, self.names, self.tol, self.grad = fn, names, tol, grad
        self.id = f"{fn.__module__.rpartition('.')[2]}::{fn.__name__}"


def case(*names, tol=None, grad=True):
    """Marks a case that shows the public names given ("paddle.add", "paddle.Tensor.add_", …) to agree.

    tol: allowed difference as a part of the output's range, where the dtype's own (compare.py) is not enough:
    say why in a comment. grad=False: gradients are not compared (nothing differentiable, or the case does it).
    The function returns tensors, arrays, numbers, strings, or lists, tuples and dicts of them.
    """
    if not names:
        raise TypeError("a case names what it shows")

    def mark(fn):
        CASES.append(Case(fn, names, tol, grad))
        return fn
    return mark


def _leaf(values, dtype, grad):
    t = paddle.to_tensor(values)
    if str(t.dtype).rpartition(".")[2] != dtype:
        t = t.astype(dtype)
    floating = dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
    t.stop_gradient = not (grad and floating)
    if grad and floating:
        _state["leaves"].append(t)
    return t


def array(*shape, low=-2.0, high=2.0):
    """Uniform float64 values in [low, high), the same on both sides."""
    return np.asarray(_state["rng"].uniform(low, high, shape))


def rand(*shape, dtype="float32", low=-2.0, high=2.0, grad=True):
    """A tensor of uniform values that wants a gradient."""
    if dtype.startswith("complex"):
        values = (array(*shape, low=low, high=high) + 1j * array(*shape, low=low, high=high)).astype(dtype)
        return _leaf(values, dtype, grad)
    values = array(*shape, low=low, high=high)
    return _leaf(values.astype("float32" if dtype in ("float16", "bfloat16") else dtype), dtype, grad)


def ints(*shape, low=0, high=10, dtype="int64"):
    return _leaf(np.asarray(_state["rng"].integers(low, high, shape)).astype(dtype), dtype, False)


def bools(*shape):
    return _leaf(np.asarray(_state["rng"].integers(0, 2, shape)).astype(bool), "bool", False)


def fill(layer, scale=0.3):
    """Sets every parameter and floating buffer of a layer to values that are the same on both sides."""
    for name, value in sorted(layer.state_dict().items()):
        if "float" in str(value.dtype):
            low = 0.5 if "variance" in name or "_var" in name else -1.0
            value.set_value(array(*value.shape, low=low * scale, high=scale).astype(str(value.dtype).rpartition(".")[2]))
    return layer


def leave(folder, feed, outs):
    """Beside the model m in a folder: what it is fed and answers, {name: (array, lengths)} and [array]. The other side
    loads it then (exchange.py)."""
    with open(os.path.join(folder, "answers.pkl"), "wb") as f:
        pickle.dump((feed, outs), f)


def raised(fn, *kinds):
    """The name of the first of `kinds` (default ValueError, TypeError, …) that fn() raises, else "nothing".
    Several kinds are grouped: Paddle's and Proa's may differ within the group."""
    try:
        fn()
    except kinds or Exception as e:
        return "raised" if kinds else type(e).__name__
    return "nothing"


def _flat(value):
    if isinstance(value, dict):
        value = [value[k] for k in value]
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in _flat(v)]
    return [value]


def _is_tensor(v):
    return isinstance(v, paddle.Tensor)


def _plain(value):
    """Tensors as (dtype, array); the rest as it is."""
    if _is_tensor(value):
        dtype = str(value.dtype).rpartition(".")[2]
        wide = value.detach().astype("float32") if dtype == "bfloat16" else value.detach()
        return ("tensor", dtype, np.array(wide.numpy()))
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return ("array", str(value.dtype), np.array(value))
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return repr(value)


def _weighted(outputs):
    """A scalar that every element of the floating outputs enters with a weight of its own."""
    total = None
    for k, out in enumerate(outputs):
        kind = str(out.dtype).rpartition(".")[2]
        if out.stop_gradient or not (kind.startswith(("float", "bfloat", "complex"))):
            continue
        if kind.startswith("complex"):
            out = paddle.real(out) + 2.0 * paddle.imag(out)
        out = out.astype("float64") if kind == "float64" or kind == "complex128" else out.astype("float32")
        n = int(np.prod(out.shape, dtype=np.int64))
        weights = np.cos(np.arange(n) * 0.7 + k).reshape(out.shape).astype(str(out.dtype).rpartition(".")[2])
        part = (out * paddle.to_tensor(weights)).sum()
        total = part if total is None else total + part.astype(total.dtype)
    return total


def run(one):
    """A case's outcome: what it returned and the gradients of its inputs, as plain values."""
    _state["rng"], _state["leaves"] = np.random.default_rng(zlib.crc32(one.id.encode())), []
    paddle.seed(1)
    np.random.seed(1)
    returned = one.fn()
    result = {"returned": _plain(returned)}
    if one.grad and _state["leaves"]:
        total = _weighted([v for v in _flat(returned) if _is_tensor(v)])
        if total is not None:
            total.backward()
            result["gradients"] = [_plain(t.grad) for t in _state["leaves"]]
    return result


def since_removed(name, heir):
    """A public name of 2.0 and 2.1 that 2.6.2 has no more: on Proa its object, on real Paddle heir(), by which 2.6.2 does
    the same."""
    if paddle.__name__ != "proa":
        return heir()
    return pkgutil.resolve_name(name)
