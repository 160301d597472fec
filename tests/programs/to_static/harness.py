"""Cases for conversion: a function, and calls of it. Each call is made as plain Python and as converted code with
the same tensors, and as a program; what comes back, or is raised, must be the same."""
import numpy as np


class T:
    """A tensor argument, made anew for each call."""

    def __init__(self, *data, dtype="float32", shape=None):
        self.data, self.dtype, self.shape = data, dtype, shape

    def __repr__(self):
        return f"T{self.data}"

    def make(self, paddle):
        array = np.array(self.data, self.dtype)
        return paddle.to_tensor(array.reshape(self.shape) if self.shape is not None else array)


def S(value, dtype="float32"):
    """A tensor without dims."""
    return T(value, dtype=dtype, shape=[])


def I(*data):  # noqa: E743
    """An int64 tensor."""
    return T(*data, dtype="int64")


class Case:
    def __init__(self, function, calls, symbolic, open_dims, error):
        self.function, self.calls = function, calls
        self.symbolic, self.open_dims, self.error = symbolic, open_dims, error
        self.name = function.__name__


def collector():
    """(list of cases, decorator that adds one)"""
    cases = []

    def case(*calls, symbolic=True, open_dims=False, error=None):
        """calls: argument lists. symbolic: run as a program, too; open_dims: also with unknown dims; error: a part of
        the message with which it is refused as a program."""
        def add(function):
            cases.append(Case(function, [call if isinstance(call, tuple) else (call,) for call in calls], symbolic,
                              open_dims, error))
            return function
        return add
    return cases, case


def arguments(paddle, call):
    def make(value):
        if isinstance(value, T):
            return value.make(paddle)
        if isinstance(value, (list, tuple)):
            return type(value)(make(one) for one in value)
        if isinstance(value, dict):
            return {key: make(one) for key, one in value.items()}
        return value
    return [make(value) for value in call]


def outcome(function, args):
    """The outcome of a call: ("value", v) or ("error", type, text)."""
    try:
        return "value", function(*args)
    except Exception as error:
        return "error", type(error), str(error)


def plain(value):
    """Tensors as (dtype, array), numbers as they are; the rest by structure."""
    if hasattr(value, "numpy") and hasattr(value, "stop_gradient"):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def check_same(expected, got, where, numbers_are_tensors=False):
    """Asserts that two values agree, bit by bit. numbers_are_tensors: a program gives tensors for numbers."""
    if hasattr(expected, "numpy") and hasattr(expected, "stop_gradient"):
        assert hasattr(got, "numpy"), f"{where}: expected a tensor, got {got!r}"
        assert str(expected.dtype) == str(got.dtype), f"{where}: {expected.dtype} became {got.dtype}"
        a, b = expected.numpy(), got.numpy()
        assert a.shape == b.shape, f"{where}: shape {a.shape} became {b.shape}"
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{where}: {a} became {b}"
    elif isinstance(expected, (list, tuple)):
        assert type(expected) is type(got) and len(expected) == len(got), f"{where}: {expected!r} became {got!r}"
        for i, (one, other) in enumerate(zip(expected, got)):
            check_same(one, other, f"{where}[{i}]", numbers_are_tensors)
    elif isinstance(expected, dict):
        assert list(expected) == list(got), f"{where}: {expected!r} became {got!r}"
        for key in expected:
            check_same(expected[key], got[key], f"{where}[{key!r}]", numbers_are_tensors)
    elif numbers_are_tensors and hasattr(got, "numpy") and isinstance(expected, (bool, int, float)):
        kind = {"b": bool, "i": int, "f": float}[got.numpy().dtype.kind]
        assert got.shape == [] and kind is type(expected), f"{where}: {expected!r} became {got!r}"
        assert got.item() == expected, f"{where}: {expected!r} became {got.item()!r}"
    else:
        assert type(expected) is type(got) and expected == got, f"{where}: {expected!r} became {got!r}"
