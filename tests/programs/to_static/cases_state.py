"""Python state that branches and loops change: followed into the program, or refused with a typed error; never changed
once, while the program is built."""
import collections
import contextlib
import dataclasses
import functools
import random

import numpy as np
from harness import I, S, T, collector

CASES, case = collector()
X = T(1.0, 2.0, 3.0)
POSITIVE, NEGATIVE = T(1.0, 2.0, 3.0), T(-1.0, -2.0, -3.0)



@case(POSITIVE, NEGATIVE, error="a deque is changed")
def queue_changed(x):
    q = collections.deque([x])
    if x.sum() > 0:
        q.append(x + 1)
    else:
        q.append(x + 2)
    return list(q)


@case(POSITIVE, NEGATIVE, error="a bytearray is changed")
def bytes_changed(x):
    b = bytearray(b"ab")
    if x.sum() > 0:
        b[0] = 0
    return bytes(b), x


@case(POSITIVE, NEGATIVE, error="an item is taken from a list_iterator")
def iterator_in_a_branch(x):
    it = iter([x, x + 1, x + 2])
    if x.sum() > 0:
        y = next(it)
    else:
        y = x
    return y, next(it)


@case(POSITIVE, NEGATIVE, error="an item is taken from a generator")
def generator_in_a_branch(x):
    g = (x * i for i in range(3))
    if x.sum() > 0:
        next(g)
    return next(g)


@case(POSITIVE, NEGATIVE, error="a ndarray is changed")
def array_changed(x):
    a = np.zeros(2)
    if x.sum() > 0:
        a[0] = 5
    return a.tolist(), x


@case(POSITIVE, NEGATIVE, error="a O is changed")
def slots_changed(x):
    class O:
        __slots__ = ("a",)
    o = O()
    o.a = x
    if x.sum() > 0:
        o.a = x * 2
    return o.a


@case(POSITIVE, NEGATIVE, error="a class O is changed")
def class_changed(x):
    class O:
        a = 1
    if x.sum() > 0:
        O.a = 2
    return O.a, x


@case(S(1.0), S(9.0), error="an item is taken from a range_iterator")
def iterator_in_a_loop(x):
    it = iter(range(100))
    n = 0
    while x < 10:
        x = x + next(it)
        n = n + 1
    return x, n


@case(S(1.0), S(9.0), error="a Random is changed")
def drawn_in_a_loop(x):
    r = random.Random(3)
    while x < 10:
        x = x + r.randint(1, 3)
    return x


@case(S(1.0), S(9.0), error="a class C is changed")
def class_counts_in_a_loop(x):
    class C:
        n = 0
    while x < 10:
        C.n += 1
        x = x + C.n
    return x, C.n


@case(S(1.0), S(9.0), error="is a list of 0 before the loop and a list of 1 after a turn")
def default_grows_in_a_loop(x):
    def f(a, seen=[]):
        seen.append(1)
        return a + len(seen)
    while x < 10:
        x = f(x)
    return x


@case(POSITIVE, NEGATIVE)
def function_attribute(x):
    def f():
        return 0
    f.n = 1
    if x.sum() > 0:
        f.n = 2
    return f.n, x


@case(POSITIVE, NEGATIVE, error="s is {1, 2, 3} where")
def set_grows_in_a_branch(x):
    s = {1, 2}
    if x.sum() > 0:
        s.add(3)
    return len(s), x


@case(POSITIVE, NEGATIVE)
def context_manager_made_here(x):
    @contextlib.contextmanager
    def cm(v):
        yield v * 2
    with cm(x) as y:
        if y.sum() > 0:
            return y
    return x


@case(POSITIVE, NEGATIVE)
def dataclass_in_a_branch(x):
    @dataclasses.dataclass
    class D:
        a: object
        n: int = 0
    d = D(x)
    if x.sum() > 0:
        d.n += 1
        d.a = d.a + 1
    return d.a, d.n


@case(POSITIVE, NEGATIVE)
def attribute_deleted_in_a_branch(x):
    class O:
        pass

    o = O()
    o.a = x
    if x.sum() > 0:
        o.a = x * 2
    else:
        del o.a
        o.a = x * 3
    return o.a


@case(POSITIVE, NEGATIVE)
def try_with_else_in_branches(x):
    y = x
    try:
        if x.sum() > 0:
            y = x * 2
        else:
            y = x * 3
    except ValueError:
        y = x
    else:
        y = y + 1
    finally:
        y = y + 10
    return y


@case(S(1.0), S(9.0))
def try_in_a_symbolic_loop(x):
    n = 0
    while x < 10:
        try:
            x = x + 3
            if x > 6:
                break
        finally:
            n = n + 1
    return x, n


@case((X, I(2)), (X, I(0)))
def with_in_a_symbolic_loop(x, n):
    for i in range(n):
        with contextlib.suppress(ValueError):
            if i > 0:
                continue
            x = x + 1
        x = x * 2
    return x


@case(POSITIVE, NEGATIVE)
def popped_in_a_branch(x):
    l = [x, x + 1]
    if x.sum() > 0:
        y = l.pop()
    else:
        y = l.pop(0)
    return y, l


@case(POSITIVE, NEGATIVE)
def setdefault_in_a_branch(x):
    d = {}
    if x.sum() > 0:
        d.setdefault("a", x)
    else:
        d["a"] = x * 2
    return d["a"]


@case(POSITIVE, NEGATIVE)
def default_dict_in_a_branch(x):
    c = collections.defaultdict(list)
    if x.sum() > 0:
        c["p"].append(x)
    else:
        c["p"].append(x * 2)
    return c["p"]


@case(POSITIVE, NEGATIVE)
def reduced_by_a_condition(x):
    return functools.reduce(lambda a, b: a if a > b else b, x)


@case(POSITIVE, NEGATIVE)
def named_tuple_replaced(x):
    N = collections.namedtuple("N", "a b")
    t = N(x, 1)
    if x.sum() > 0:
        t = t._replace(a=x * 2)
    return t.a, t.b


@case(S(1.0), S(9.0), error="is a list of 5 before the loop and a list of 4 after a turn")
def popped_in_a_loop(x):
    l = [1.0, 2.0, 3.0, 4.0, 5.0]
    while x < 5:
        x = x + l.pop()
    return x, l


@case(X, T(-1.0, 2.0, 5.0))
def items_changed_one_by_one(x):
    y = x * 1
    for i in range(3):
        if y[i] > 1:
            y[i] *= 10
        else:
            y[i] -= 1
    return y


@case(X, T(-1.0, 2.0, 5.0))
def alias_written_in_a_loop(x):
    y = x + 0
    z = y
    i = 0
    while x.sum() > 6 and i < 2:
        z[i] = 9.0
        x = x - 1
        i += 1
    return y, z


@case(T(3.0, 1.0, 2.0), T(1.0, 2.0, 3.0))
def sorted_in_place(x):
    x = x + 0
    for i in range(3):
        for j in range(2 - i):
            if x[j] > x[j + 1]:
                a = x[j] + 0
                x[j] = x[j + 1]
                x[j + 1] = a
    return x
