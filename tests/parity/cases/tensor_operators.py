"""Operators: Tensor with Tensor and with Python numbers, promotion, comparison, in-place forms."""
import operator

import numpy as np
import paddle
from parity import bools, case, ints, rand

ARITHMETIC = ["add", "sub", "mul", "truediv", "pow"]


def _arithmetic(name):
    op = getattr(operator, name)

    def run():
        x, y = rand(3, 4, low=.5, high=2), rand(4, low=.5, high=2)
        return [op(x, y), op(x, 2), op(x, 2.5), op(2, x), op(2.5, x), op(rand(low=.5), x)]
    run.__name__ = name
    case("paddle.Tensor")(run)


for _name in ARITHMETIC:
    _arithmetic(_name)


def _integers(name):
    op = getattr(operator, name)

    def run():
        out = []
        for dtype in ("int32", "int64"):
            x, y = ints(3, 4, low=1, dtype=dtype), ints(4, low=1, dtype=dtype)
            out += [op(x, y), op(x, 2)] + ([] if name in ("floordiv", "mod") else [op(x, 2.5), op(9, x)])
        return out
    run.__name__ = name + "_of_integers"
    case("paddle.Tensor", grad=False)(run)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    _integers(_name)


def _compare(name):
    op = getattr(operator, name)

    def run():
        x, y = ints(3, 4, high=3), ints(4, high=3)
        return [op(x, y), op(x, 1), op(rand(3), 0.0), op(x.astype("float32"), 1)]
    run.__name__ = name
    case("paddle.Tensor", grad=False)(run)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _compare(_name)


@case("paddle.Tensor", grad=False)
def bit_operators():
    a, b = ints(3, 4, dtype="int32"), ints(3, 4, dtype="int32")
    p, q = bools(3), bools(3)
    return a & b, a | b, a ^ b, ~a, p & q, p | q, p ^ q, ~p


@case("paddle.Tensor")
def unary_operators():
    x = rand(3, 4)
    return -x, x @ rand(4, 2)


@case("paddle.Tensor")
def augmented():
    x = rand(3, 4)
    y = x * 1.0
    y += 1
    y *= 2.0
    y -= x
    y /= 4
    return y


@case("paddle.Tensor", grad=False)
def promotion():
    out = []
    for a in ("float16", "float32", "float64"):
        for number in (1, 1.5):
            out += [(rand(2, dtype=a, grad=False) + number).dtype, (number * rand(2, dtype=a, grad=False)).dtype]
    for a in ("int32", "int64", "uint8"):
        out += [(ints(2, dtype=a) + 1).dtype, (ints(2, dtype=a) + 1.5).dtype, (ints(2, dtype=a) * 1.0).dtype]
    out += [(rand(2) + rand(2, dtype="float64")).dtype, (bools(2) + 1).dtype, (bools(2) / 2).dtype]  # complex numbers: Paddle
    # drops their imaginary part, Proa does not
    return [str(d).rpartition(".")[2].split(":")[0].strip("<> ") and str(d).rpartition(".")[2] for d in out]


@case("paddle.Tensor", grad=False)
def numbers():
    x = paddle.to_tensor([3])
    f = paddle.to_tensor(2.5)
    return int(x), float(x), bool(x), len(rand(3, 2)), [float(v) for v in rand(3)], int(f), list(range(5))[int(x)], \
        f"{f.item():.2f}"


@case("paddle.Tensor", grad=False)
def with_arrays():
    x = rand(3, grad=False)
    return x + np.ones(3, "float32"), x * np.float32(2), np.asarray(x), np.sum(np.array(x))


@case("paddle.Tensor.__truediv__")
def integers_over_floats():
    out = []
    for dtype in ("int64", "int32", "uint8", "bool"):
        x = paddle.to_tensor([7, 0, 9]).astype(dtype)
        for other in ("float32", "float64", "int64", "int8"):
            out += [x / paddle.to_tensor([2.5, 3.0, 1.0]).astype(other)]
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x, y = paddle.static.data("x", [3], "int64"), paddle.static.data("y", [3], "float32")
            quotient = x / y
        feed = {"x": np.array([7, 0, 9]), "y": np.array([2.5, 3.0, 1.0], "float32")}
        out += paddle.static.Executor().run(main, feed=feed, fetch_list=[quotient])
    finally:
        paddle.disable_static()
    return out
