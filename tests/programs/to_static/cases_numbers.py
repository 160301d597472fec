"""Python's numbers where only the run knows them: counters, what a branch chose, shapes. They calculate as Python's do,
and meet tensors as literals do."""
import math

import proa as paddle
from harness import I, S, T, collector

CASES, case = collector()
X = T(1.0, 2.0, 3.0)
M = T([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])


@case(S(1.0), S(100.0))
def neg_floordiv(x):
    n = 0
    m = 0
    while x < 30:
        n -= 3
        m = n // 2
        x = x * 2
    return x, n, m


@case(S(1.0), S(100.0))
def neg_mod(x):
    n = 0
    m = 0
    while x < 30:
        n -= 3
        m = n % 5
        x = x * 2
    return x, n, m


@case(S(1.0), S(100.0))
def true_div(x):
    n = 1
    m = 0.0
    while x < 30:
        n += 3
        m = n / 7
        x = x * 2
    return x, n, m


@case(S(1.0), S(100.0))
def float_precise(x):
    m = 0.1
    while x < 30:
        m = m + 0.1
        x = x * 2
    return x, m


@case(S(1.0), S(100.0))
def float_mod(x):
    m = -0.75
    k = 0.0
    while x < 30:
        k = m % 0.5
        m = m - 0.3
        x = x * 2
    return x, m, k


@case(S(1.0), S(100.0))
def float_floordiv(x):
    m = -0.75
    k = 0.0
    while x < 30:
        k = m // 0.5
        m = m - 0.3
        x = x * 2
    return x, m, k


@case(S(1.0), S(100.0))
def big_ints(x):
    n = 2 ** 40
    while x < 30:
        n = n * 4
        x = x * 2
    return x, n


@case(S(1.0), S(100.0))
def shifts(x):
    n = 1
    while x < 30:
        n = n << 1
        x = x * 2
    return x, n


@case(S(1.0), S(100.0))
def bits(x):
    n = 5
    m = 0
    while x < 30:
        m = (n & 3) | 8
        n = n ^ 6
        x = x * 2
    return x, n, m


@case(S(1.0), S(100.0))
def invert(x):
    n = 5
    while x < 30:
        n = ~n
        x = x * 2
    return x, n


@case(S(1.0), S(100.0))
def power(x):
    n = 2
    while x < 30:
        n = n ** 2
        x = x * 2
    return x, n


@case(S(1.0), S(100.0))
def neg_power(x):
    n = 2
    m = 1.0
    while x < 30:
        n = n + 1
        m = n ** -1
        x = x * 2
    return x, n, m


@case(S(1.0), S(100.0))
def isinst(x):
    n = 0
    k = 0
    while x < 30:
        n += 1
        if isinstance(n, int):
            k = k + 2
        else:
            k = k - 1
        x = x * 2
    return x, n, k


@case(S(1.0), S(100.0))
def typ(x):
    n = 0
    while x < 30:
        n += 1
        x = x * 2
    return x, type(n) is int, type(n).__name__


@case(S(1.0), S(100.0))
def divmods(x):
    n = 0
    q = r = 0
    while x < 30:
        n -= 3
        q, r = divmod(n, 4)
        x = x * 2
    return x, q, r


@case(S(1.0), S(100.0))
def rounding(x):
    m = 0.5
    k = 0
    while x < 30:
        m = m + 1.0
        k = round(m)
        x = x * 2
    return x, m, k


@case(S(1.0), S(100.0))
def intcast(x):
    m = -0.5
    k = 0
    while x < 30:
        m = m - 1.25
        k = int(m)
        x = x * 2
    return x, m, k


@case(S(1.0), S(100.0))
def mathfns(x):
    m = 0.5
    k = 0
    while x < 30:
        m = m + 1.25
        k = math.floor(m)
        x = x * 2
    return x, m, k


@case(S(1.0), S(100.0))
def contains(x):
    n = 0
    k = 0
    while x < 30:
        n += 1
        if n in (2, 3):
            k += 1
        x = x * 2
    return x, k


@case(S(1.0), S(100.0))
def bool_arith(x):
    b = True
    n = 0
    while x < 30:
        n = n + b
        b = not b
        x = x * 2
    return x, n, b


@case(S(1.0), S(100.0))
def bool_or_value(x):
    n = 0
    m = 7
    while x < 30:
        m = n or 5
        n = n + 1
        x = x * 2
    return x, m


@case(S(1.0), S(100.0))
def eq_types(x):
    n = 0
    while x < 30:
        n = n + 1
        x = x * 2
    return n == 5, n == 5.0, n == "5", n is None, n != 0


@case(S(1.0), S(100.0))
def if_int_ops(x):
    n = -7
    if x > 30:
        n = -9
    return n // 2, n % 4, n / 2, n ** 2, -n, abs(n), n // -4, n % -4


@case(S(1.0), S(100.0))
def if_int_shift(x):
    n = 7
    if x > 30:
        n = 9
    return n << 2, n >> 1, n & 3, n | 8, n ^ 5, ~n


@case(S(1.0), S(100.0))
def if_float_ops(x):
    n = -7.25
    if x > 30:
        n = -9.75
    return n // 2, n % 4, n / 2, n ** 2, -n, abs(n), n // -4, n % -4


@case(S(1.0), S(100.0))
def if_float_acc(x):
    n = 0.1
    if x > 30:
        n = 0.2
    return n + 0.7, n * 3


@case(S(1.0), S(100.0))
def if_cmp_float(x):
    n = 0.1
    if x > 30:
        n = 0.2
    return n + 0.2 == 0.3, n > 0.1


@case(S(1.0), S(100.0))
def if_bool_arith(x):
    n = True
    if x > 30:
        n = False
    return n + 1, n * 2.5, -n, n & True, not n, n == 1


@case(S(1.0), S(100.0))
def if_int_times_tensor(x):
    n = 2
    if x > 30:
        n = 3
    return x * n, x + n, x / n, x ** n, n - x, n / x


@case(I(4), I(40))
def if_float_times_int_tensor(x):
    n = 0.5
    if x > 30:
        n = 1.5
    return x * n, x + n, n - x


@case(I(4), I(40))
def if_int_div_int_tensor(x):
    n = 2
    if x > 30:
        n = 3
    return x / n, x // n, x % n


@case(T(4, dtype="int32"), T(40, dtype="int32"))
def if_int_times_int32_tensor(x):
    n = 2
    if x > 30:
        n = 3
    return x * n, x + n, n - x


@case(T(4, dtype="float64"), T(40, dtype="float64"))
def if_float_times_float64_tensor(x):
    n = 0.1
    if x > 30:
        n = 0.2
    return x * n, x + n, n - x


@case(T(4, dtype="float16"), T(40, dtype="float16"))
def if_float_times_float16_tensor(x):
    n = 0.1
    if x > 30:
        n = 0.2
    return x * n, x + n, n - x


@case(S(1.0), S(100.0))
def bool_to_int(x):
    m = False
    while x < 30:
        x = x * 2
        m = 3
    return m * 1


@case(X, T(-1.0, -2.0, 5.0))
def range_tensor_div(x):
    t = x
    for i in range(x.astype("int64").max()):
        t = t + x * (i / 3) - i / 7
    return t


@case(M)
def shape_math(x):
    n = x.shape[0]
    return x / n, x * (1 / n), n / 4, n // 2, n ** 0.5 * x


@case(X, T(-1.0, -2.0, 5.0))
def enumerate_scale(x):
    t = x * 0
    for i, v in enumerate(x):
        if v > 0:
            t = t + v / (i + 1)
    return t


@case(X, T(-1.0, -2.0, 5.0))
def float_item(x):
    m = float(x.max())
    return x * m, m * 2, m + 0.1


@case(X, T(-1.0, -2.0, 5.0))
def int_item(x):
    m = int(x.max())
    return x * m, m * 2, m / 3, x / m


@case(X, T(-1.0, -2.0, 5.0))
def bool_item(x):
    m = bool(x.max() > 3)
    return x * m, m * 2, m + 1


@case(X, T(-1.0, -2.0, 5.0))
def count_hits(x):
    n = 0
    for v in x:
        if v > 1.5:
            n += 1
    return x / n if n > 0 else x, n


@case(X, T(-1.0, -2.0, 5.0))
def mean_running(x):
    mean = 0.0
    n = 0
    for v in x:
        if v > 0:
            n += 1
            mean += (float(v) - mean) / n
    return mean, n


@case(X, T(-1.0, -2.0, 5.0))
def clip_by_number(x):
    lim = 1.5
    if x.sum() > 3:
        lim = 2.5
    return paddle.clip(x, -lim, lim), x.clip(max=lim)


@case(X, T(-1.0, -2.0, 5.0))
def full_by_int(x):
    v = 1
    if x.sum() > 3:
        v = 2
    return paddle.full([2], v, "float32")


@case(X, T(-1.0, -2.0, 5.0))
def where_numbers(x):
    v = 1
    if x.sum() > 3:
        v = 2
    return paddle.where(x > v, x * v, x - v), x > v, x == v, x != v, v < x, v >= x


@case(X, T(-1.0, -2.0, 5.0))
def list_built(x):
    v = 1
    w = 0.25
    if x.sum() > 3:
        v = 2
        w = 0.75
    return paddle.to_tensor([v, 2]), paddle.to_tensor([w, 2.0])


@case(X, T(-1.0, -2.0, 5.0))
def to_tensor_number(x):
    v = 1
    w = 0.25
    if x.sum() > 3:
        v = 2
        w = 0.75
    return paddle.to_tensor(v), paddle.to_tensor(w), paddle.to_tensor(w, dtype="float64")


@case(X, T(-1.0, -2.0, 5.0))
def index_number(x):
    v = 1
    if x.sum() > 3:
        v = 2
    y = x + 0
    y[v] = 10.0
    return x[v], x[:v], x[-v], y


@case(X, T(-1.0, -2.0, 5.0))
def set_value_number(x):
    w = 0.1
    if x.sum() > 3:
        w = 0.7
    y = x + 0
    y[1] = w
    y[0:1] = w * 2
    z = x.astype("int64")
    return y, z


@case(X, T(-1.0, -2.0, 5.0))
def iadd_number(x):
    w = 0.1
    if x.sum() > 3:
        w = 0.7
    y = x + 0
    y += w
    y *= w
    y -= w
    y /= w
    y **= 2
    return y


@case(X, T(-1.0, -2.0, 5.0))
def arange_number(x):
    w = 2
    if x.sum() > 3:
        w = 3
    return paddle.arange(w), paddle.arange(0, 6, w)


@case(X, T(-1.0, -2.0, 5.0))
def reshape_number(x):
    w = 1
    if x.sum() > 3:
        w = 3
    return x.reshape([w, -1]), paddle.tile(x, [w]), paddle.expand(x, [w, 3])


@case(X, T(-1.0, -2.0, 5.0))
def ternaries(x):
    w = 1 if x.sum() > 3 else 2
    v = 0.1 if x.sum() > 3 else -0.1
    return x * w, x * v, w * v, w if v > 0 else -w


@case(X, T(-1.0, -2.0, 5.0))
def strings_of(x):
    w = 1 if x.sum() > 3 else 2
    return w == 1, w in [1, 5], w not in (1, 3), [w, w][0]


@case(X, T(-1.0, -2.0, 5.0))
def zero_div(x):
    w = 0 if x.sum() > 3 else 1
    return 5 // (w + 1), 6 % (w + 1)


@case(X, T(-1.0, -2.0, 5.0))
def isinstances(x):
    w = 1 if x.sum() > 3 else 2
    v = 0.5 if x.sum() > 3 else 2.5
    b = True if x.sum() > 3 else False
    return [isinstance(one, t) for one in (w, v, b, x) for t in (int, float, bool, (int, float), paddle.Tensor)], type(w) is int, type(v) == float


@case(X, T(-1.0, -2.0, 5.0))
def isint_methods(x):
    v = 2.5 if x.sum() > 3 else 2.0
    return v.is_integer()


@case(X, T(-1.0, -2.0, 5.0))
def lr_schedule(x):
    lr, step = 0.1, 0
    while step < x.max():
        lr *= 0.9
        step += 1
        if step % 2 == 0:
            lr += 0.01
    return lr, step


@case(X, T(-1.0, -2.0, 5.0))
def newton(x):
    a = float(x.max())
    g = a / 2
    n = 0
    while abs(g * g - a) > 1e-10:
        g = (g + a / g) / 2
        n += 1
    return g, n


@case(S(27.0), S(6.0))
def collatz(x):
    n = int(x)
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@case((I(48), I(18)), (I(17), I(5)))
def gcd(a, b):
    a, b = int(a), int(b)
    while b:
        a, b = b, a % b
    return a


@case(S(10.0), S(0.0))
def fib(x):
    a, b = 0, 1
    for _ in range(int(x)):
        a, b = b, a + b
    return a, a / b


@case(S(10.0), S(2.0))
def bisect(x):
    lo, hi = 0.0, float(x) + 1
    while hi - lo > 1e-9:
        mid = (lo + hi) / 2
        if mid * mid > x:
            hi = mid
        else:
            lo = mid
    return lo


@case(X, T(-1.0, -2.0, 5.0))
def numel_math(x):
    n = x.numel()
    return x.sum() / n, n + 1


@case(S(1.0), S(100.0), error="a number that is known only in the run is a key of a dict")
def counter_as_a_key(x):
    n = 0
    table = {0: 5, 1: 7, 2: 9, 3: 1, 4: 3, 5: 5}
    total = 0
    while x < 30:
        total = total + table[n]
        n = n + 1
        x = x * 2
    return total


@case(S(1.0), S(100.0), error="a variable keeps its dtype and rank")
def float_beside_whole_tensor(x):
    n = x.astype("int64")
    while x < 30:
        n = 0.5
        x = x * 2
    return n
