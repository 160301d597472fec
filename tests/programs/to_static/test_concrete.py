"""Converted code on concrete values does what Python does."""
import warnings

import pytest

import all_cases
import proa as paddle
from harness import arguments, check_same, outcome
from proa.jit.dy2static.runtime.calls import converted


@pytest.mark.parametrize("case", all_cases.CASES, ids=[case.name for case in all_cases.CASES])
def test_concrete(case, capsys):
    for call in case.calls:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function = converted(case.function)
        assert function is not case.function
        expected = outcome(case.function, arguments(paddle, call))
        said = capsys.readouterr().out
        got = outcome(function, arguments(paddle, call))
        assert capsys.readouterr().out == said
        if expected[0] == "error":
            assert got[0] == "error", f"{case.name}{call}: {expected} became {got}"
            if issubclass(expected[1], NameError):  # Python says it in other words for a cell
                assert issubclass(got[1], NameError)
            else:
                assert got[1:] == expected[1:]
        else:
            assert got[0] == "value", f"{case.name}{call}: {got}"
            check_same(expected[1], got[1], f"{case.name}{call}")
