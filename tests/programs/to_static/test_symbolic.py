"""The same functions as programs: values bit by bit as eager, or refused with the user's own line."""
import linecache
import re

import pytest

import all_cases
import proa as paddle
from harness import T, arguments, check_same, outcome
from proa.jit.dy2static.errors import ConversionError
from proa.static import InputSpec

SYMBOLIC = [case for case in all_cases.CASES if case.symbolic]
REFUSED = [case for case in SYMBOLIC if case.error]
SAME = [case for case in SYMBOLIC if not case.error]
OPEN = [case for case in SAME if case.open_dims]


def run(case, call, input_spec=None):
    given = arguments(paddle, call)
    expected = outcome(case.function, given)
    static = paddle.jit.to_static(case.function, input_spec=input_spec)
    for _ in range(2):  # captured, and run again
        mine = arguments(paddle, call)
        got = outcome(static, mine)
        where = f"{case.name}{call}"
        if expected[0] == "error":
            assert got[:2] == expected[:2], f"{where}: {expected} became {got}"
        else:
            assert got[0] == "value", f"{where}: {got}"
            check_same(expected[1], got[1], where, numbers_are_tensors=True)
            check_same(given, mine, f"{where}, arguments afterwards")


@pytest.mark.parametrize("case", SAME, ids=[case.name for case in SAME])
def test_as_program(case):
    for call in case.calls:
        run(case, call)


def open_spec(value):
    if isinstance(value, T):
        tensor = value.make(paddle)
        return InputSpec([-1] * len(tensor.shape), tensor.dtype)
    return value


@pytest.mark.parametrize("case", OPEN, ids=[case.name for case in OPEN])
def test_unknown_dims(case):
    specs = [open_spec(value) for value in case.calls[0]]
    for call in case.calls:
        run(case, call, specs)


@pytest.mark.parametrize("case", REFUSED, ids=[case.name for case in REFUSED])
def test_refused(case):
    static = paddle.jit.to_static(case.function, full_graph=True)
    with pytest.raises(Exception) as caught:
        static(*arguments(paddle, case.calls[0]))
    assert re.search(re.escape(case.error).replace(r"\|", "|"), str(caught.value)), str(caught.value)
    if isinstance(caught.value, ConversionError):
        place = re.search(r'File "(.*)", line (\d+)\n    (.*)', str(caught.value))
        assert place, str(caught.value)
        assert place[1] == case.function.__code__.co_filename
        assert place[3] == linecache.getline(place[1], int(place[2])).strip()
    else:
        assert "In transformed code:" in str(caught.value)
