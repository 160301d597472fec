"""Functions, closures, classes; containers, slices and comprehensions; casts, len, print, assert."""
import functools

import proa as paddle
from harness import I, S, T, collector

CASES, case = collector()
X, NEGATIVE = T(1.0, 2.0, 3.0), T(-1.0, -2.0, 0.5)


# ---- functions


def helper(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def twice(function, x):
    return function(function(x))


@case(X, NEGATIVE)
def calls_function(x):
    return helper(x) * 2


@case(X, NEGATIVE)
def passes_function(x):
    return twice(helper, x)


@case(X, NEGATIVE)
def nested_function(x):
    def inner(y):
        if y.sum() > 0:
            return y * 2
        return y * 3
    return inner(x) + inner(-x)


@case(X, NEGATIVE)
def closure(x):
    k = 3

    def inner(y):
        if y.sum() > 0:
            return y * k
        return y - k
    k = 4
    return inner(x)


@case(X, NEGATIVE)
def nonlocal_number(x):
    n = 0

    def bump():
        nonlocal n
        n += 1
        return n
    bump()
    y = x * bump()
    return y, n


@case(X, NEGATIVE)
def nonlocal_in_branch(x):
    y = x

    def shift(by):
        nonlocal y
        y = y + by
    if x.sum() > 0:
        shift(1)
    else:
        shift(10)
    return y


@case(X, NEGATIVE)
def lambdas(x):
    f = lambda y: y + 1 if y.sum() > 0 else y - 1
    g = lambda y, k=2, *a, **b: f(y) * k
    return f(x), g(x), g(x, 3)


pick = lambda y: y + 1 if y.sum() > 0 else y - 1


@case(X, NEGATIVE)
def module_lambda(x):
    return pick(x)


@case(X, NEGATIVE)
def arguments_of_all_kinds(x):
    def inner(a, b=2, *rest, c, d=4, **more):
        if a.sum() > 0:
            return a * b + c
        return a * d + sum(rest) + more["z"]
    return inner(x, 1, 7, 8, c=3, z=1) + inner(x, c=1, z=2)


@case((X, 1), (X, 1, 2, 3))
def star_arguments(x, *rest):
    for n in rest:
        x = x + n
    return x, len(rest)


@case((X, 2))
def keyword_calls(x, n):
    options = {"axis": 0, "keepdim": True}
    return paddle.sum(x, **options), dict(n=n, **options)


def loud(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        result = function(*args, **kwargs)
        if result.sum() > 0:
            return result + 100
        return result
    return wrapper


@loud
def decorated(x):
    if x.sum() > 0:
        return x
    return x * 2


@case(X, NEGATIVE)
def calls_decorated(x):
    return decorated(x)


@case(X, NEGATIVE)
def inner_decorator(x):
    @loud
    def inner(y):
        return -y if y.sum() > 0 else y
    return inner(x)


@case(X, NEGATIVE)
def partials(x):
    add = functools.partial(lambda a, b: a + b if b.sum() > 0 else a - b, x)
    return add(x * 2)


@case(X, NEGATIVE)
def recursion(x):
    def down(y, n):
        if n == 0:
            return y
        return down(y + n, n - 1)
    return down(x, 3)


def _leaves(nested):
    return [x for one in nested for x in _leaves(one)] if isinstance(nested, (list, tuple)) else [nested]


@case(X, NEGATIVE)
def global_recursion(x):
    return _leaves([x, (x * 2, [x + 1])])


@case(X, NEGATIVE)
def changes_arguments(x):
    y = x * 2
    x.add_(y)
    x[0] = 5.0
    x[1:] = y[:-1]
    return x * y


@case((X, X), (NEGATIVE, X))
def detached(x, y):
    y = (x * y).detach()
    return y * x, y.stop_gradient


@case(X)
def default_objects(x, seen=()):
    def inner(y, k=len("abc")):
        return y * k
    return inner(x), seen


@case(X, NEGATIVE)
def returns_function(x):
    def make(k):
        def inner(y):
            return y * k if y.sum() > 0 else y + k
        return inner
    return make(2)(x) + make(3)(x)


@case(X)
def generator_inside(x):
    def numbers(n):
        for i in range(n):
            yield i
    total = x
    for i in numbers(3):
        total = total + i
    return total, sum(i * i for i in range(4))


@case(X, NEGATIVE)
def maps_and_filters(x):
    return list(map(helper, [x, -x])), list(filter(lambda n: n > 1, [1, 2, 3])), functools.reduce(
        lambda a, b: a + b if x.sum() > 0 else a - b, [x, x, x])


counter = 0


@case(X, NEGATIVE)
def global_number(x):
    global counter
    counter = 5
    if x.shape[0] == 3:
        counter += 1
    return x * counter


# ---- classes


class Base:
    scale = 2

    def __init__(self, k):
        self.k = k
        self.__hidden = k + 1

    def run(self, x):
        if x.sum() > 0:
            return x * self.k
        return x * self.scale

    def hidden(self, x):
        return x + self.__hidden

    @staticmethod
    def still(x):
        return x + 1 if x.sum() > 0 else x

    @classmethod
    def of_class(cls, x):
        return x * cls.scale if x.sum() > 0 else x

    @property
    def half(self):
        return self.k / 2

    def __call__(self, x):
        return self.run(x) if x.sum() > -100 else x


class Derived(Base):
    def run(self, x):
        y = super().run(x)
        if y.sum() > 10:
            y = y - super().hidden(x)
        return y

    def hidden(self, x):
        return super(Derived, self).hidden(x) * 2


@case(X, NEGATIVE)
def methods(x):
    return Base(3).run(x), Base(3).hidden(x), Base.still(x), Base.of_class(x), Base(3).half


@case(X, NEGATIVE)
def super_methods(x):
    return Derived(3).run(x), Derived(3).hidden(x)


@case(X, NEGATIVE)
def callable_object(x):
    return Base(3)(x)


@case(X, NEGATIVE)
def attribute_in_branch(x):
    box = Base(3)
    box.y = x
    if x.sum() > 0:
        box.y = x * 2
    else:
        box.y = x * 3
    return box.y


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = paddle.nn.Sequential(Inner(), paddle.nn.ReLU(), Inner())
        self.parts = paddle.nn.LayerList([Inner(), Inner()])

    def forward(self, x):
        x = self.inner(x)
        for i, part in enumerate(self.parts):
            if x.sum() > i:
                x = part(x)
        return x


class Inner(paddle.nn.Layer):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return -x


NET = Net()


@case(X, NEGATIVE)
def layers(x):
    return NET(x)


# ---- containers


@case(X)
def list_methods(x):
    out = []
    for i in range(3):
        out.append(x + i)
    out.extend([x, x])
    out.insert(0, -x)
    last = out.pop()
    out[0] = out[1] * 2
    del out[1]
    return out, last, len(out)


@case(X, NEGATIVE)
def list_in_both_branches(x):
    out = [x]
    if x.sum() > 0:
        out.append(x + 1)
    else:
        out.append(x - 1)
    return out


@case(X, NEGATIVE)
def list_item_in_branch(x):
    out = [x, x]
    if x.sum() > 0:
        out[1] = x * 5
    return out


@case(X, NEGATIVE)
def list_stays_the_same_object(x):
    out = [x, x]
    alias = out
    if x.sum() > 0:
        out[0] = x * 5
    return alias


@case(X, NEGATIVE)
def dict_methods(x):
    d = {}
    d["a"] = x
    d.setdefault("b", x + 1)
    d.update(c=x * 2)
    if x.sum() > 0:
        d["a"] = d["b"] * 2
    else:
        d["a"] = d.get("zzz", d["c"])
    return d, d.pop("b"), "a" in d, list(d.keys())


@case(X)
def tuples(x):
    a, *b = x, 1, 2
    (c, d), e = (a, b), 3
    return a, b, c, d, e


@case(X)
def comprehensions(x):
    a = [x + i for i in range(4) if i % 2]
    b = {i: x * i for i in range(2)}
    c = {i for i in range(3) if i and i < 9}
    e = [(i, j) for i in range(3) for j in range(i) if i != j]
    return a, b, sorted(c), e


@case(T([1.0, 2.0], [3.0, 4.0]))
def comprehension_over_tensor(x):
    return [row * 2 for row in x], [row if row.sum() > 4 else -row for row in x]


@case(X)
def nested_comprehension(x):
    return [[x * (i + j) for j in range(2)] for i in range(2)]


@case((X, 2))
def chained_assignment(x, n):
    d = {}
    a = b = d["k"] = x + n
    return a, b, d


@case((X, 2))
def swapped_items(x, n):
    items = [1, 2, 3]
    items[0], items[2] = items[2], items[0]
    items[1] += n
    items[0:2] = [9, 8, 7]
    return items


# ---- slices


@case(X, open_dims=True)
def slice_read(x):
    return x[1:], x[-1], x[::2], x[None, :2]


@case(X)
def slice_written(x):
    y = paddle.zeros([5])
    y[1:4] = x
    y[-1] = 7.0
    return y


@case(T([1.0, 2.0], [3.0, 4.0]))
def slice_of_two_dims(x):
    y = x * 1
    y[:, 0] = 5.0
    y[1, 1:] = x[0, :1]
    y[0] += 1.0
    return y


@case((X, I(1)))
def index_by_tensor(x, i):
    return x[i], paddle.gather(x, i)


@case(T([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]), open_dims=True)
def slices_in_loop(x):
    total = paddle.zeros([2])
    for i in range(3):
        total = total + x[i]
        if total.sum() > 5:
            total = total - x[0]
    return total


# ---- casts and questions


@case(S(2.7), S(-2.7))
def casts(x):
    return int(x), float(x), bool(x), int("7"), float("2.5"), bool([])


@case(X)
def cast_used(x):
    return x * int(x.sum())


@case(X, open_dims=True)
def length(x):
    return x + len(x), len([1, 2]), len("abc")


@case(T([1.0, 2.0], [3.0, 4.0]), open_dims=True)
def shapes(x):
    b, c = x.shape
    return x.reshape([c, b]), x.reshape([b * c]), paddle.zeros([b, 3]), x.reshape([x.shape[0], -1])


@case(T([1.0, 2.0], [3.0, 4.0]), open_dims=True)
def shape_condition(x):
    if x.shape[0] == 2:
        return x + 1
    return x - 1


@case(X, (3,), ("s",))
def kinds(x):
    if isinstance(x, paddle.Tensor):
        return x + 1
    if isinstance(x, (int, float)):
        return x + 2
    return type(x).__name__, hasattr(x, "upper"), callable(x)


@case(X, NEGATIVE)
def extremes(x):
    return max(x.sum(), x.min() * 9), min(x.max(), x.sum()), max(1, 2), min([3, 1])


@case(X, NEGATIVE)
def sums(x):
    return sum([x, x, x]), abs(x), pow(x, 2), any([x.sum() > 0, x.sum() > 100]), all([x.sum() > 0, True])


@case((X, 3))
def strings(x, n):
    return f"n={n} {n > 2}", "%d" % n, "{}".format(n), "a" * n


@case((1,), (2,), ("x",), symbolic=False)
def printing(n):
    print("n is", n, sep="=")
    if n == 1:
        print("one", end="!\n")
    return n


@case((1,), (-1,), symbolic=False)
def asserting(n):
    assert n > 0
    return n


@case((1,), (-1,), symbolic=False)
def asserting_with_message(n):
    assert n > 0 and n < 10, f"n is {n}"
    return n


@case((5,), (0,), ("a",), symbolic=False)
def raising(n):
    if n == 0:
        raise ValueError("zero")
    for i in range(3):
        n = n + 10 // n
    return n


@case((5,), symbolic=False)
def undefined_name(n):
    if n > 10:
        y = 1
    return y


@case((3,), (0,), symbolic=False)
def undefined_after_loop(n):
    for i in range(n):
        k = i
    return i, k


@case((3,), symbolic=False)
def index_error(n):
    items = [1, 2]
    for i in range(n):
        items[i] += 1
    return items


@case((X, NEGATIVE))
def tensor_methods(x, y):
    z = x.clip(min=0).astype("int32")
    w = x.cast("float64")
    return z, w, x.unsqueeze(0).squeeze(0), x @ y


@case(X, NEGATIVE)
def detached(x):
    y = x.detach()
    if y.sum() > 0:
        y = paddle.nn.functional.relu(y)
    return y


@case(X)
def annotated(x: "Tensor") -> "Tensor":
    y: int = 3
    z: "Tensor"
    z = x * y
    return z


@case((X, 4))
def deep_nesting(x, n):
    for i in range(n):
        if i > 0:
            for j in range(i):
                if j % 2:
                    while n > 2:
                        n -= 1
                        if n == 3:
                            continue
                        x = x + n
                else:
                    x = x - 1
    return x, n


@case((X, [1, 2, 3]))
def starred_call(x, items):
    def add(a, b, c):
        return x + a + b + c
    return add(*items), [*items, 4], {**{"a": 1}, "b": 2}


@case(X)
def local_class(x):
    class Point:
        def __init__(self, a):
            self.a = a

        def moved(self, by):
            if by > 0:
                return Point(self.a + by)
            return self
    return Point(x).moved(2).a


@case(X)
def local_import(x):
    import math
    from math import floor as down
    if x.shape[0] > 2:
        import cmath
    return x * math.ceil(1.5) + down(2.5)


class Odd:
    def method(self, x):
        text = """
at the margin
    and not
"""
# so is this comment
        if x.sum() > 0:
            return x + len(text), (
                text)
        return x - len(text), text


@case(X, NEGATIVE)
def strings_at_the_margin(x):
    return Odd().method(x)


@case(X, NEGATIVE)
def long_statements(x):
    y = paddle.concat([
        x,
        x * 2 if x.sum() > 0
        else x * 3,
    ]) ; z = y + 1
    if (x.sum() > 0
            and x.max() < 10): z = z * 2
    return z, \
        y


@case((X, 3))
def del_and_pass(x, n):
    a, b = x, n
    if n > 2:
        pass
    for _ in range(n): a = a + b
    del b
    return a
