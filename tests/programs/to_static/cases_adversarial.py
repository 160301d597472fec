"""Adversarial programs for the converter: jumps out of with and try, closures over loop variables, generators,
walrus, match, starred targets, tensors as keys, recursion. Plain Python says what is right."""
import contextlib

from harness import I, S, T, collector

CASES, case = collector()
X = T(1.0, 2.0, 3.0)


class Note:
    """A context manager that writes down what happens."""

    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append("out" if kind is None else kind.__name__)
        return kind is KeyError


@case(X, T(9.0, 9.0, 9.0))
def break_out_of_a_with(x):
    log = []
    for i in range(5):
        with Note(log):
            if i == 2:
                break
            log.append(i)
        log.append("after")
    return x, log


@case(X, T(9.0, 9.0, 9.0))
def return_out_of_two_withs(x):
    log = []
    with Note(log):
        with Note(log):
            for i in range(4):
                if i == 1:
                    return x * i, log
                log.append(i)
        log.append("never")
    return x, log


@case(X, T(9.0, 9.0, 9.0))
def break_on_a_tensor_in_a_with(x):
    total = x * 0
    for i in range(5):
        with contextlib.nullcontext(i) as n:
            if total.sum() > 10:
                break
            total = total + x * n
        total = total + 1
    return total, x


@case((X, 0), (X, 1), (X, 2))
def finally_runs_before_return(x, n):
    log = []
    for i in range(3):
        try:
            if i == n:
                return x + i, log
            log.append(i)
        finally:
            log.append("finally")
    return x, log


@case((X, 0), (X, 1))
def finally_overrides_return(x, n):
    try:
        if n:
            return x
        x = x + 1
    finally:
        x = x * 2
        if n:
            return x
    return x - 100


@case((X, 0), (X, 1), (X, 2), (X, 3))
def continue_in_except(x, n):
    table = {1: 10, 2: 20}
    total = x
    for i in range(n + 1):
        try:
            total = total + table[i]
        except KeyError as missing:
            total = total * 2
            if missing.args[0] == 0:
                continue
            break
        else:
            total = total - 1
        finally:
            total = total + 0.5
        total = total + 100
    return total


@case((X, 0), (X, 1))
def nested_try_and_raise_again(x, n):
    log = []
    try:
        try:
            if n:
                raise ValueError(f"inner {n}")
            log.append("fine")
        except ValueError as error:
            log.append(str(error))
            raise KeyError("outer") from error
        finally:
            log.append("first")
    except KeyError as error:
        log.append((str(error), str(error.__cause__)))
    return x, log


@case((X, 0), (X, 1))
def exception_swallowed_by_with(x, n):
    log = []
    with Note(log):
        x = x + 1
        if n:
            raise KeyError("gone")
        x = x + 10
    return x, log


@case(X)
def closures_over_the_loop_variable(x):
    late = [lambda y: y * i for i in range(3)]
    early = [lambda y, i=i: y * i for i in range(3)]
    made = []
    for k in range(3):
        def add(y):
            return y + k
        made.append(add)
    return [f(x) for f in late], [f(x) for f in early], [f(x) for f in made]


@case(S(1.0), S(100.0))
def closure_sees_a_later_value(x):
    scale = 1

    def scaled():
        return x * scale

    if x > 50:
        scale = 3
    else:
        scale = 5
    x = x + 1
    return scaled()


@case(S(1.0), S(7.0))
def closure_changes_outer_in_a_loop(x):
    count = 0

    def step(v):
        nonlocal count
        count += 1
        return v * 2

    while x < 20:
        x = step(x)
    return x, count


@case(X)
def generator_expressions(x):
    squares = (v * v for v in x)
    first = next(squares)
    return first, sum(squares), max(float(i) for i in range(3)), list(v + 1 for v in [x, x])


@case(X, T(-1.0, 5.0, -2.0))
def generator_that_yields_tensors(x):
    def parts(t):
        for i in range(3):
            if i == 1:
                continue
            yield t[i]
    return [p * 2 for p in parts(x)]


@case(X, T(-4.0, 1.0, 1.0))
def walrus_in_a_condition(x):
    if (total := x.sum()) > 0:
        y = total * 2
    else:
        y = total - 1
    return y, total


@case((X, 3), (X, 0))
def walrus_in_while(x, n):
    while (n := n - 1) > 0:
        x = x + n
    return x, n


@case(S(1.0), S(40.0))
def walrus_in_a_symbolic_while(x):
    while (y := x * 2) < 30:
        x = y + 1
    return x, y


@case(X)
def walrus_in_a_comprehension(x):
    kept = [last := v * 2 for v in [x, x + 1]]
    return kept, last


@case((X, 1), (X, [1, 2]), (X, {"k": 3}), (X, "s"), (X, (4, 5, 6)), (X, None))
def match_statement(x, what):
    match what:
        case None:
            return x
        case int(n) if n > 0:
            x = x + n
        case [a, b]:
            x = x + a * b
        case [a, *rest]:
            x = x + a + len(rest)
        case {"k": v, **others}:
            return x * v + len(others)
        case str() | bytes():
            x = -x
    return x


@case((S(1.0), "up"), (S(1.0), "down"))
def match_with_tensor_conditions(x, way):
    for _ in range(3):
        match way:
            case "up":
                if x > 2:
                    break
                x = x * 2
            case _:
                x = x - 1
                continue
        x = x + 0.5
    return x


@case(X)
def lambda_defaults(x):
    n = 2
    f = lambda y, k=n, *rest, z=n + 1: y * k + z + len(rest)
    n = 100
    return f(x), f(x, 1), f(x, 1, 2, 3, z=x), (lambda: n)()


@case(X)
def defaults_are_made_once(x):
    made = []
    for i in range(2):
        def keep(v, into=[], n=i):
            into.append(v)
            return len(into) + n
        made.append((keep(x), keep(x)))
    return made


@case(X, T(5.0, 6.0, 7.0))
def starred_targets(x):
    first, *rest = [x[0], x[1], x[2]]
    *init, last = (x, x + 1, x + 2)
    (a, *b), c = [1, 2, 3], x
    [d, *e] = "pqr"
    return first, rest, init, last, a, b, c, d, e


@case(X, T(5.0, 6.0, 7.0))
def starred_target_of_a_tensor(x):
    first, *rest = x
    return first, len(rest), rest[-1]


@case((X, I(0, 2, 1)), (X, I(1, 1, 1)))
def comprehension_with_tensor_test(x, order):
    return [v for v in [x, x + 1, x + 2] if len(v) == 3], [[a * b for b in x] for a in x], {i: x[i] for i in range(3)}


@case(X, T(-1.0, 5.0, -2.0), error="a program's variable has no value")
def comprehension_filters_by_a_tensor(x):
    return [v for v in x if v > 1]


@case(X, T(-1.0, 5.0, -2.0))
def comprehension_with_a_ternary(x):
    return [v * 2 if v > 1 else v for v in x], [(v > 1 and v < 3) for v in x]


@case(X)
def tensors_as_keys(x):
    y = x + 1
    table = {x: "x", y: "y"}
    seen = {x, y, x}
    return table[x], table[y], len(seen), x in table, (x * 1) in table


@case((X, 2.0), (X, 100.0))
def early_return_in_nested_loops(x, limit):
    for i in range(3):
        for j in range(3):
            if i * j > limit:
                return x + i, "early"
            if i == j:
                continue
            for k in range(2):
                x = x + k
                if k == 1 and j == 2:
                    break
            else:
                x = x + 100
        else:
            x = x * 2
    return x, "late"


@case(X, T(50.0, 1.0, 1.0))
def early_return_on_tensors_in_nested_loops(x):
    for i in range(3):
        j = 0
        while j < 3:
            if x.sum() > 60:
                return x * 10
            x = x + j
            if x[1] > 4:
                break
            j += 1
        x = x + i
    return x


@case(S(3.0), S(0.0))
def while_else_with_break_and_continue(x):
    n = 0
    while n < 6:
        n += 1
        if x > 8:
            break
        if n % 2:
            continue
        x = x + n
    else:
        x = -x
    return x, n


@case((S(1.0), 5), (S(1.0), 0))
def recursion_by_number(x, n):
    def power(v, k):
        if k == 0:
            return v
        return power(v * 2, k - 1) + k
    return power(x, n)


@case(S(1.0), S(9.0), error="maximum recursion depth exceeded")
def recursion_by_tensor(x):
    def halve(v):
        if v < 2:
            return v
        return halve(v / 2)
    return halve(x)


def is_even(n, x):
    return x if n == 0 else is_odd(n - 1, x + 1)


def is_odd(n, x):
    return -x if n == 0 else is_even(n - 1, x + 1)


@case((X, 4), (X, 5))
def mutual_recursion(x, n):
    return is_even(n, x)


@case((X, 1), (X, 3))
def exception_carries_a_tensor(x, n):
    class Stop(Exception):
        pass

    def search(v):
        for i in range(5):
            v = v + i
            if i == n:
                raise Stop(v, i)
        return v

    try:
        return search(x), "none"
    except Stop as stop:
        value, i = stop.args
    return value, i


@case(X, T(-1.0, 1.0, 0.5), error="raise ValueError under a condition that only the run knows")
def exception_decided_by_a_tensor(x):
    try:
        if x.sum() > 1:
            raise ValueError("large")
        y = x + 1
    except ValueError:
        y = x - 1
    return y


@case(X)
def names_deleted_and_made_again(x):
    y = x + 1
    for i in range(2):
        z = y
        del y
        y = z * 2
    del z, i
    return "z" in locals(), "y" in locals(), y


@case(X, T(-1.0, -1.0, -1.0))
def same_name_rebound_many_ways(x):
    for x in [x, x + 1]:
        with contextlib.nullcontext(x * 2) as x:
            x = [x for x in [x]][0]
            if x.sum() > 0:
                x = x + 1
    return x


@case((X, True), (X, False))
def order_of_evaluation(x, flag):
    log = []

    def note(v, name):
        log.append(name)
        return v

    items = [0, 1]
    items[note(0, "index")] = note(5, "value")
    r = note(x, "a") + note(x, "b") * (note(1, "yes") if note(flag, "test") else note(2, "no"))
    t = note(0, "l") < note(1, "m") < note(0, "n") < note(9, "unreached")
    u = note(False, "p") and note(True, "q") or note(True, "r")
    return r, t, u, items, log


@case(X, T(-1.0, -1.0, -1.0))
def augmented_targets(x):
    items, table = [x, 1], {"a": x}
    items[0] += 1
    table["a"] *= 2
    items[-1] **= 3
    x = x + 0
    x[0] += 10
    x[1:] *= 2
    if x.sum() > 0:
        items[0] -= x
    return items, table, x


@case(X, T(-1.0, -1.0, -1.0))
def alias_in_branch(x):
    a = [x]
    b = a
    if x.sum() > 0:
        a = a + [x]
        b[0] = x * 2
    else:
        a = a + [x * 3]
        b[0] = x
    return a, b, a is b


@case((X, I(3)), (X, I(0)))
def loop_variable_after_the_loop(x, n):
    i = 7
    for i in range(int(n)):
        x = x + i
    return x, i


@case((S(0.0), 10), (S(50.0), 10))
def return_in_loop_else_in_try(x, n):
    try:
        for i in range(n):
            x = x + i
            if x > 55:
                return x, i
        else:
            return x, -1
    finally:
        x = None


@case(X)
def global_functions_shadowed(x):
    len = lambda v: 42
    range = [10, 20]
    print = []
    total = x
    for i in range:
        total = total + i
    print.append(len(x))
    return total, print


@case((X, 3), (X, 30))
def chained_methods_and_conditions(x, n):
    y = (x + n if n > 5 else x - n).abs().clip(0 if n else 1, 10)
    return y if not (n > 5 or n < 2) and y.shape == [3] else [y, n]


@case(X, T(0.5, 0.1, 0.2))
def class_made_inside(x):
    class Box:
        count = 0

        def __init__(self, v):
            self.v = v
            Box.count += 1

        @property
        def twice(self):
            return self.v * 2

        @staticmethod
        def zero(v):
            return v * 0

        @classmethod
        def of(cls, v):
            return cls(v + 1)

        def __iter__(self):
            yield from [self.v, self.twice]

        def __getitem__(self, i):
            return self.v[i]

        def __len__(self):
            return 2

        def __bool__(self):
            return self.v.shape[0] > 2

    box = Box.of(x)
    return (list(box), box[1], len(box), Box.zero(x), Box.count, box.twice if box else None)


@case(X, T(0.5, 0.1, 0.2), error="a program's variable has no value")
def property_that_asks_a_tensor(x):
    class Box:
        @property
        def bounded(self):
            return x * 2 if x.sum() > 1 else x

    return Box().bounded


@case(S(1.0), S(9.0))
def walrus_and_break(x):
    n = 0
    while (y := x + n) < 30:
        n += 1
        if y > 20:
            break
        if n == 2:
            continue
        x = x + y
    else:
        x = -x
    return x, y, n


@case((X, 4), (X, 0))
def walrus_takes_from_an_iterator(x, n):
    items = iter(range(n, 0, -1))
    total = x
    while (i := next(items, None)) is not None and i > 1:
        total = total + i
        if i == 2:
            return total, i
    return total, i


@case((X, 1), (X, 0))
def names_of_the_function(x, n):
    y = x * 2
    if n:
        k = sorted(locals())
    else:
        k = dir()
    inner = (lambda a: sorted(a))(vars())

    def reads(z):
        w = z + n
        return sorted(locals()), eval("w + n + z")
    return k, inner, reads(3), eval("n + 1")


@case(X)
def names_in_a_lambda(x):
    dir = lambda: 5
    return x, dir()


@case((S(1.0), 3), (S(60.0), 3))
def return_in_every_part_of_a_try(x, n):
    try:
        for i in range(n):
            x = x + i
            if x > 50:
                return x * 2
        else:
            return x
    except ValueError:
        return x * 0
