"""Functions that converted code calls for and, or, not, comparison chains, assert and raise: Python's meaning for plain values,
ops for variables of a program."""
import operator

from .... import _core
from ..errors import refuse
from . import effects
from .numbers import as_number, number
from .values import NUMBERS, Tensor, symbolic, truth, user_place

_COMPARE = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
            "ne": operator.ne, "is_": operator.is_, "is_not": operator.is_not}


def test_and(first, *others):
    """`first and …` where only its truth matters: the rest are functions, called as Python would."""
    for other in others:
        if not symbolic(first):
            if not first:
                return first
            first = other()
            continue
        second = other()
        if not symbolic(second):
            first = first if second else False
        else:
            first = _core.logical_and(truth(first), truth(second))
    return first


def test_or(first, *others):
    """`first or …` where only its truth matters."""
    for other in others:
        if not symbolic(first):
            if first:
                return first
            first = other()
            continue
        second = other()
        if not symbolic(second):
            first = True if second else first
        else:
            first = _core.logical_or(truth(first), truth(second))
    return first


def _pick(first, other, when):
    """`first and other()` (when True) or `first or other()` of a symbolic first: one of the two values."""
    from .branches import choose
    if first.dtype == _core.bool and not first.ndim:
        second = other()
        if isinstance(second, bool):
            return _core.logical_and(first, number(second)) if when else _core.logical_or(first, number(second))
        if isinstance(second, Tensor) and second.dtype == _core.bool and not second.ndim:
            return (_core.logical_and if when else _core.logical_or)(first, second)
        other = (lambda: second)
    return choose(first, other, lambda: first) if when else choose(first, lambda: first, other)


def and_(first, *others):
    """`first and …`: the value that decides, as Python has it."""
    for other in others:
        if symbolic(first):
            first = _pick(first, other, True)
        elif first:
            first = other()
        else:
            return first
    return first


def or_(first, *others):
    """`first or …`: the value that decides."""
    for other in others:
        if symbolic(first):
            first = _pick(first, other, False)
        elif not first:
            first = other()
        else:
            return first
    return first


def not_(value):
    """not value"""
    return as_number(_core.logical_not(truth(value))) if symbolic(value) else not value


def _in(value, where):
    if isinstance(where, (list, tuple)) and (symbolic(value) or any(symbolic(one) for one in where)):
        found = False
        for one in where:
            if one is value:
                return True
            if isinstance(one, (Tensor, *NUMBERS)) and isinstance(value, (Tensor, *NUMBERS)):
                equal = one == value
                found = test_or(found, lambda equal=equal: equal)
        return found
    if symbolic(where) and isinstance(value, (Tensor, *NUMBERS)):
        return _core.any(where == value)
    return value in where


def compare(first, *rest):
    """first OP second OP third …: each operand evaluated once, no more of them than needed."""
    result = None
    for i in range(0, len(rest), 2):
        name = rest[i]
        if result is not None and not symbolic(result) and not result:
            return result
        second = rest[i + 1]()
        if name in _COMPARE:
            here = _COMPARE[name](first, second)
        else:
            here = _in(first, second)
            if name == "not_in":
                here = not_(here)
        result = here if result is None else and_(result, lambda here=here: here)
        first = second
    return result


def assert_(test, message=None):
    """assert test, message"""
    if not symbolic(test):
        if not test:
            raise AssertionError(*() if message is None else (message(),))
        return
    if not effects.checkable():
        raise refuse("assert on a tensor inside a branch or loop that is known only in the run, or in a try: assert outside, or "
                     "compute with paddle.where", user_place())
    text = () if message is None else (message(),)

    def check(values):
        if not values[0].item():
            raise AssertionError(*text)
    effects.on_run(check, [truth(test, "an assertion")])


def raised(error):
    """The exception of a raise statement; marked, so that a block that raises is known from one that fails."""
    if isinstance(error, type) and issubclass(error, BaseException):
        error = error()
    try:
        error._proa_raised = True
    except AttributeError:
        pass
    return error


def refuse_raise(error, place):
    """The error for a raise that would leave a branch or loop of which only the run knows whether it is taken."""
    return refuse(f"raise {type(error).__name__} under a condition that only the run knows, in a loop, another branch or "
                  "a try: a program cannot do that; check the condition before", place)
