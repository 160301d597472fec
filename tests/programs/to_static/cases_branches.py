"""if, elif, else, ternaries, and, or, not, comparison chains."""
import proa as paddle
from harness import S, T, collector

CASES, case = collector()
POSITIVE, NEGATIVE = T(1.0, 2.0, 3.0), T(-1.0, -2.0, 0.5)


@case(POSITIVE, NEGATIVE, open_dims=True)
def if_else(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


@case(POSITIVE, NEGATIVE, open_dims=True)
def if_alone(x):
    y = x + 1
    if x.sum() > 0:
        y = y * y
    return y


@case(POSITIVE, NEGATIVE)
def else_alone_matters(x):
    y = x + 1
    if x.sum() > 0:
        pass
    else:
        y = y * y
    return y


@case(T(5.0), T(1.0), T(-1.0), T(-5.0), open_dims=True)
def elif_chain(x):
    if x.sum() > 3:
        y = x
    elif x.sum() > 0:
        y = x * 2
    elif x.sum() > -3:
        y = x * 3
    else:
        y = x * 4
    return y


@case(T(5.0), T(1.0), T(-1.0), T(-5.0))
def nested_ifs(x):
    if x.sum() > 0:
        if x.sum() > 3:
            y = x + 10
        else:
            y = x + 20
    else:
        if x.sum() > -3:
            y = x + 30
        else:
            y = x + 40
    return y - 1


@case(POSITIVE, NEGATIVE)
def two_variables(x):
    a, b = x, x * 2
    if x.sum() > 0:
        a, b = b, a
    return a, b


@case(POSITIVE, NEGATIVE)
def augmented(x):
    if x.sum() > 0:
        x += 1
    else:
        x -= 1
    return x


@case(POSITIVE, NEGATIVE)
def number_in_branches(x):
    k = 1
    if x.sum() > 0:
        k = 2
    else:
        k = 3
    return x * k


@case(POSITIVE, NEGATIVE)
def number_returned(x):
    if x.sum() > 0:
        k = 2
    else:
        k = 3
    return k


@case(POSITIVE, NEGATIVE)
def int_or_float(x):
    k = 1.5
    if x.sum() > 0:
        k = 2.5
    return k * x


@case(POSITIVE, NEGATIVE)
def bool_in_branches(x):
    flag = False
    if x.sum() > 0:
        flag = True
    return x + 1 if flag else x - 1


@case((POSITIVE, True), (NEGATIVE, False), (POSITIVE, 0))
def python_condition(x, flag):
    if flag:
        y = x + 1
    else:
        y = x - 1
    return y


@case((POSITIVE, None), (POSITIVE, 2))
def is_none(x, k):
    if k is None:
        return x
    return x * k


@case((POSITIVE, ""), (POSITIVE, "a"), (POSITIVE, []), (POSITIVE, [1]))
def truth_of_objects(x, what):
    if what:
        return x, "full"
    return x, "empty"


@case(POSITIVE, NEGATIVE)
def unused_new_name(x):
    if x.sum() > 0:
        only_here = x * 2
        y = only_here + 1
    else:
        y = x
    return y


@case(POSITIVE, NEGATIVE)
def tuple_in_branches(x):
    if x.sum() > 0:
        pair = (x, x + 1)
    else:
        pair = (x * 2, x * 3)
    return pair[0] + pair[1]


@case(POSITIVE, NEGATIVE)
def dict_in_branches(x):
    if x.sum() > 0:
        d = {"a": x, "n": 1}
    else:
        d = {"a": -x, "n": 1}
    return d["a"], d["n"]


@case(POSITIVE, NEGATIVE)
def nested_structure(x):
    out = {"l": [x, x], "k": (x, {"z": x})}
    if x.sum() > 0:
        out = {"l": [x + 1, x], "k": (x - 1, {"z": x * 2})}
    return out


@case(POSITIVE, NEGATIVE)
def same_constant(x):
    if x.sum() > 0:
        name, y = "same", x
    else:
        name, y = "same", -x
    return name, y


@case(POSITIVE, NEGATIVE)
def none_kept(x):
    z = None
    if x.sum() > 0:
        y = x
    else:
        y = -x
    return y, z


@case(T(1.0, 2.0), T(-1.0, 2.0))
def reduced_condition(x):
    if (x > 0).all():
        x = x + 1
    if paddle.any(x < 0):
        x = x - 1
    return x


@case(T(1.0), T(-1.0))
def one_element_condition(x):
    if x > 0:
        return x * 2
    return x * 3


@case(S(1.0), S(0.0), S(-2.0))
def number_as_condition(x):
    if x:
        return x + 1
    else:
        return x - 1


@case(POSITIVE, NEGATIVE)
def in_a_with(x):
    with paddle.no_grad():
        if x.sum() > 0:
            y = x + 1
        else:
            y = x - 1
    return y


@case(POSITIVE, NEGATIVE)
def with_in_a_branch(x):
    if x.sum() > 0:
        with paddle.no_grad():
            y = x + 1
    else:
        y = x - 1
    return y


@case((POSITIVE, 1), (NEGATIVE, 0))
def try_in_a_branch(x, n):
    if x.sum() > 0:
        try:
            y = x * (1 // n)
        except ZeroDivisionError:
            y = x
    else:
        y = -x
    return y


@case(POSITIVE, NEGATIVE)
def deleted_name(x):
    a = x
    if x.sum() > 0:
        b = a + 1
        del a
    else:
        b = a - 1
        del a
    return b


# ---- ternaries


@case(POSITIVE, NEGATIVE, open_dims=True)
def ternary(x):
    return x + 1 if x.sum() > 0 else x - 1


@case(T(5.0), T(1.0), T(-1.0))
def ternary_chain(x):
    return x if x.sum() > 3 else x * 2 if x.sum() > 0 else x * 3


@case(POSITIVE, NEGATIVE)
def ternary_numbers(x):
    return x * (2 if x.sum() > 0 else 3)


@case((POSITIVE, 0), (POSITIVE, 3))
def ternary_python(x, n):
    return x / n if n else x


@case(POSITIVE, NEGATIVE)
def ternary_in_call(x):
    return paddle.concat([x, x if x.sum() > 0 else -x])


@case(POSITIVE, NEGATIVE)
def ternary_tuples(x):
    a, b = (x, x + 1) if x.sum() > 0 else (x + 2, x + 3)
    return a - b, a


# ---- logic


@case(POSITIVE, NEGATIVE, T(9.0, 9.0, 9.0))
def and_(x):
    if x.sum() > 0 and x.max() < 5:
        return x + 1
    return x - 1


@case(POSITIVE, NEGATIVE, T(-9.0, -9.0, -9.0))
def or_(x):
    if x.sum() > 0 or x.min() > -5:
        return x + 1
    return x - 1


@case(POSITIVE, NEGATIVE)
def not_(x):
    if not x.sum() > 0:
        return x + 1
    return x - 1


@case((POSITIVE, None), (NEGATIVE, 3), (POSITIVE, 3))
def mixed_and(x, k):
    if k is not None and x.sum() > 0:
        return x * k
    return x


@case((POSITIVE, None), (NEGATIVE, 3), (POSITIVE, 3), (NEGATIVE, None))
def mixed_or(x, k):
    if k is None or x.sum() > 0:
        return x + 1
    return x * k


@case((0, 5), (3, 0), ("", "b"), ([], None), (1, 2), ({}, 0.0))
def values_not_bools(a, b):
    return a and b, a or b, not a, not (a and b), a or b or "last", a and b and "last"


@case((1, 0), (0, 1), (5, 5))
def short_circuit(a, b):
    seen = []

    def look(name, value):
        seen.append(name)
        return value
    result = look("a", a) and look("b", b) or look("c", 7)
    return result, seen


@case(POSITIVE, NEGATIVE)
def logic_as_value(x):
    flag = x.sum() > 0 and x.max() < 10
    return flag, x.sum() > 0 or x.max() > 10, not x.sum() > 0


@case(S(2.0), S(0.0), S(-1.0))
def value_of_and(x):
    return x and x * 3


@case(S(2.0), S(0.0), S(-1.0))
def value_of_or(x):
    return x or x + 5


@case(S(2.0), S(0.5), S(-1.0), S(7.0))
def chained(x):
    if 0 < x < 5:
        return x + 1
    return x - 1


@case(S(2.0), S(0.5), S(-1.0), S(7.0))
def long_chain(x):
    return 0 < x <= 2 < x + 1.5 != 9


@case((1, 2, 3), (3, 2, 1), (1, 1, 1))
def chain_of_numbers(a, b, c):
    return a < b < c, a <= b == c, a is b is c, a in [b] in [[c]]


@case((2, [1, 2]), (5, [1, 2]), ("a", "abc"), ("k", {"k": 1}))
def membership(a, where):
    return a in where, a not in where


@case(S(2.0), S(5.0))
def symbolic_membership(x):
    if x in [1.0, 2.0]:
        return x * 10
    return x


@case(POSITIVE, NEGATIVE)
def and_of_many(x):
    if x.sum() > -100 and x.sum() < 100 and x.max() > 0 and not x.min() > 0:
        return x + 1
    return x - 1


@case((POSITIVE, 0), (POSITIVE, 4), (NEGATIVE, 4))
def walrus(x, n):
    if (m := n + 1) > 2 and x.sum() > 0:
        return x * m
    return x


@case((POSITIVE, 1), (NEGATIVE, 1), (POSITIVE, "b"), (POSITIVE, None))
def matched(x, what):
    match what:
        case int():
            if x.sum() > 0:
                return x + what
            y = x
        case "b":
            y = x * 2
        case _:
            return x
    return y - 1


@case(POSITIVE, NEGATIVE)
def written_item(x):
    y = paddle.zeros([3])
    if x.sum() > 0:
        y[0] = x[1]
    else:
        y[1:] = x[1:] * 2
    return y


@case(POSITIVE, NEGATIVE)
def written_alias(x):
    y = paddle.zeros([3])
    z = y
    if x.sum() > 0:
        y[0] = 5.0
    return y, z


@case(POSITIVE, NEGATIVE)
def in_place_method(x):
    y = x * 2
    if x.sum() > 0:
        y.add_(paddle.ones([3]))
    return y


# ---- what a program cannot hold


@case(POSITIVE, NEGATIVE, error="y is bound only|y")
def bound_in_one_branch(x):
    if x.sum() > 0:
        y = x
    return y


@case(POSITIVE, NEGATIVE, error="name is 'a' where the condition holds and 'b' where it does not")
def strings_differ(x):
    if x.sum() > 0:
        name = "a"
    else:
        name = "b"
    return name


@case(POSITIVE, NEGATIVE, error="where the condition holds and None where it does not")
def none_or_tensor(x):
    y = None
    if x.sum() > 0:
        y = x
    return y


@case(POSITIVE, NEGATIVE, error="the returned value")
def return_or_nothing(x):
    if x.sum() > 0:
        return x


@case(POSITIVE, NEGATIVE, error="float32 tensor of shape")
def dtypes_differ(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.astype("int32")
    return y


@case(T(1.0, 2.0), T(-1.0, -2.0), error="must be one value")
def many_valued_condition(x):
    if x > 0:
        return x + 1
    return x


@case(POSITIVE, NEGATIVE, T(99.0, 2.0))
def raise_on_a_tensor(x):
    if x.sum() > 100:
        raise ValueError("too much")
    return x


@case(POSITIVE, NEGATIVE)
def raise_in_the_other_branch(x):
    if x.sum() > 0:
        y = x * 2
    else:
        raise KeyError("nothing above zero")
    return y + 1


@case(POSITIVE, NEGATIVE, error="raise ValueError under a condition that only the run knows")
def raise_in_a_branch_of_a_branch(x):
    if x.sum() > 0:
        if x.sum() > 100:
            raise ValueError("too much")
    return x


@case((T([1.0, 2.0], [3.0, 4.0]), T([1.0, 2.0], [3.0, 4.0])), (T([1.0, 2.0]), T([1.0, 2.0], [3.0, 4.0])), open_dims=True)
def raise_where_shapes_differ(x, y):
    if not x.shape == y.shape:
        raise ValueError("one shape")
    if x.shape[1:] != y.shape[1:] or x.shape == [7, 7]:
        raise ValueError("one width, and not seven")
    return x + y


@case((POSITIVE, 1), (NEGATIVE, 0))
def raise_that_is_caught(x, n):
    if x.sum() > 0:
        try:
            if n:
                raise KeyError("n")
            y = x
        except KeyError as error:
            y = x * len(error.args)
    else:
        y = -x
    return y


@case(POSITIVE, NEGATIVE, open_dims=True)
def masked_items(x):
    y = x * 1
    y[y > 1.5] = 0.0
    if x.sum() > 0:
        y[x < 1.5] = x.max()
    return y
