"""C and Python have their schedules and initializers from one table: the same rates, and the same parameters of one seed, to the bit."""
import ctypes
import pathlib

import numpy as np
import pytest

import proa as paddle
from proa.optimizer import lr

LIB = ctypes.CDLL(str(pathlib.Path(paddle.__file__).parent.parent.parent / "libproa.so"))
number, count, pointer = ctypes.c_double, ctypes.c_int64, ctypes.c_void_p
LIB.proa_schedule_lr.restype = number


class Numbers(ctypes.Structure):
    """proa_ints, proa_floats: as many as are given."""
    _fields_ = [("count", count), ("at", pointer), ("more", pointer), ("last", pointer)]


def ints(*values):
    held = (count * len(values))(*values)
    made = Numbers(len(values), ctypes.cast(held, pointer))
    made.held = held
    return made


def made(name, *args):
    """A schedule of C's, of numbers (float), counts (int) and lists."""
    function = getattr(LIB, f"proa_{name}")
    function.restype = pointer
    schedule = function(*(number(a) if isinstance(a, float) else count(a) if isinstance(a, int) else a for a in args))
    assert schedule, name
    return pointer(schedule)


CASES = [
    (("step_decay", 0.3, 4, 0.7), lambda: lr.StepDecay(0.3, 4, 0.7)),
    (("multi_step_decay", 0.3, ints(3, 9, 20), 0.7), lambda: lr.MultiStepDecay(0.3, [3, 9, 20], 0.7)),
    (("exponential_decay", 0.3, 0.9), lambda: lr.ExponentialDecay(0.3, 0.9)),
    (("natural_exp_decay", 0.3, 0.07), lambda: lr.NaturalExpDecay(0.3, 0.07)),
    (("inverse_time_decay", 0.3, 0.07), lambda: lr.InverseTimeDecay(0.3, 0.07)),
    (("polynomial_decay", 0.3, 17, 0.01, 1.7), lambda: lr.PolynomialDecay(0.3, 17, 0.01, 1.7)),
    (("cosine_restarts", 0.3, 7, 2, 0.01), lambda: lr.CosineAnnealingWarmRestarts(0.3, 7, 2, 0.01)),
    (("cosine_restarts", 0.3, 7, 1, 0.01), lambda: lr.CosineAnnealingWarmRestarts(0.3, 7, 1, 0.01)),
    (("one_cycle", 0.3, 60, 25.0, 0.0001, 0.3), lambda: lr.OneCycleLR(0.3, 60)),
    (("cyclic", 0.1, 0.3, 7, 4), lambda: lr.CyclicLR(0.1, 0.3, 7, 4)),
    (("noam_decay", 384, 20, 0.9), lambda: lr.NoamDecay(384, 20, 0.9)),
    (("linear_warmup", pointer(), 11, 0.01, 0.3), lambda: lr.LinearWarmup(0.3, 11, 0.01, 0.3)),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0][0] for case in CASES])
def test_rates(case):
    in_c, in_python = made(*case[0]), case[1]()
    for epoch in range(59):
        assert LIB.proa_schedule_lr(in_c) == in_python(), epoch
        LIB.proa_schedule_step(in_c)
        in_python.step()
    LIB.proa_schedule_free(in_c)


def test_closed_form_of_cosine():
    in_c, in_python = made("cosine_decay", 0.3, 13, 0.01), lr.CosineAnnealingDecay(0.3, 13, 0.01)
    for epoch in (0, 5, 13, 21, 40):
        LIB.proa_schedule_seek(in_c, count(epoch))
        in_python.step(epoch)
        assert LIB.proa_schedule_lr(in_c) == in_python()
    LIB.proa_schedule_free(in_c)


def test_methods_are_their_classes_own():
    for cls in (lr.StepDecay, lr.NoamDecay, lr.PiecewiseDecay):
        assert (cls.get_lr.__name__, cls.get_lr.__qualname__, cls.get_lr.__module__) == \
            ("get_lr", f"{cls.__name__}.get_lr", "proa.optimizer.lr")

    class Halved(lr.StepDecay):
        def get_lr(self):
            return super().get_lr() / 2
    assert Halved(0.5, 3)() == 0.25


class Init(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("a", number), ("b", number), ("value", pointer)]


LIB.proa_initialized.restype, LIB.proa_data.restype = pointer, pointer
KINDS = ["default", "constant", "uniform", "normal", "truncated_normal", "xavier_uniform", "xavier_normal", "kaiming_uniform",
         "kaiming_normal"]


@pytest.mark.parametrize("shape", [(7,), (6, 5), (8, 3, 3, 2)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_parameters(kind, shape):
    name = "".join(part.capitalize() for part in {"default": "xavier_uniform"}.get(kind, kind).split("_"))
    paddle.seed(11)
    expected = paddle.create_parameter(list(shape), "float32", default_initializer=getattr(paddle.nn.initializer, name)()).numpy()
    LIB.proa_seed(ctypes.c_uint64(11))
    tensor = LIB.proa_initialized(ints(*shape), LIB.proa_default_dtype(), Init(KINDS.index(kind), 0, 0, None))
    assert tensor, kind
    data = ctypes.cast(LIB.proa_data(pointer(tensor)), ctypes.POINTER(ctypes.c_float))
    np.testing.assert_array_equal(np.ctypeslib.as_array(data, shape), expected)

