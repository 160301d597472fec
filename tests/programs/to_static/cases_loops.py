"""while and for, over everything, with break, continue and return anywhere."""
import proa as paddle
from harness import I, S, T, collector

CASES, case = collector()
X = T(1.0, 2.0, 3.0)


@case(S(1.0), S(50.0), open_dims=True)
def while_tensor(x):
    while x < 20:
        x = x * 2
    return x


@case(X, T(50.0, 1.0, 1.0), open_dims=True)
def while_reduction(x):
    while x.sum() < 40:
        x = x + 1
    return x * 2


@case((X, 3), (X, 0))
def while_python(x, n):
    while n > 0:
        x = x + n
        n -= 1
    return x, n


@case(S(1.0), S(30.0))
def while_counts(x):
    n = 0
    while x < 20:
        x = x * 2
        n += 1
    return x, n


@case(S(1.0), S(30.0))
def while_float_counter(x):
    n = 0.5
    while x < 20:
        x = x * 2
        n = n * 2
    return n + x


@case(S(1.0), S(3.0))
def while_two_variables(x):
    a, b = x, x * 0
    while a + b < 30:
        a, b = a + b, a
    return a, b


@case(S(1.0), S(30.0))
def while_and(x):
    i = paddle.to_tensor(0)
    while x < 20 and i < 3:
        x = x * 2
        i = i + 1
    return x, i


@case(S(1.0), S(30.0))
def while_not(x):
    while not x > 20:
        x = x + 7
    return x


@case(S(1.0))
def while_nested(x):
    total = x * 0
    while x < 5:
        y = x
        while y < 8:
            y = y + 2
            total = total + y
        x = x + 1
    return total, x


@case(S(1.0), S(4.0))
def while_with_if(x):
    while x < 20:
        if x < 4:
            x = x + 1
        else:
            x = x * 2
    return x


@case(S(1.0))
def while_tuple_state(x):
    state = (x, x * 2)
    while state[0] < 10:
        state = (state[0] + state[1], state[1] + 1)
    return state


@case(S(1.0))
def while_dict_state(x):
    state = {"a": x, "b": x * 2}
    while state["a"] < 10:
        state = {"a": state["a"] + state["b"], "b": state["b"]}
    return state


@case(S(1.0))
def while_dict_changed(x):
    state = {"a": x}
    while state["a"] < 10:
        state["a"] = state["a"] * 3
    return state


@case(S(1.0), S(99.0))
def while_else(x):
    while x < 20:
        x = x * 2
    else:
        x = x + 0.5
    return x


@case(S(1.0), S(6.0), S(99.0))
def while_break(x):
    while x < 20:
        x = x + 3
        if x > 8:
            break
        x = x + 1
    return x


@case(S(1.0), S(99.0))
def while_true_break(x):
    n = 0
    while True:
        x = x + 3
        n += 1
        if x > 8:
            break
    return x, n


@case(S(1.0), S(6.0))
def while_continue(x):
    odd = x * 0
    while x < 12:
        x = x + 1
        if x % 2 == 0:
            continue
        odd = odd + x
    return odd


@case(S(1.0), S(6.0), S(99.0))
def while_break_else(x):
    while x < 10:
        x = x + 4
        if x == 9:
            break
    else:
        x = x * 100
    return x


@case(S(1.0), S(6.0), S(99.0))
def while_return(x):
    while x < 20:
        x = x + 3
        if x > 8:
            return x * 10
        x = x + 1
    return x


@case((S(1.0), 5), (S(1.0), 0), (S(9.0), 3))
def while_mixed_test(x, n):
    while n > 0 and x < 6:
        x = x + 1
        n -= 1
    return x


# ---- for over ranges


@case((X, 0), (X, 1), (X, 4))
def for_range(x, n):
    for i in range(n):
        x = x + i
    return x


@case((X, I(3)), (X, I(0)))
def for_range_tensor(x, n):
    for i in range(n):
        x = x + 1
    return x


@case((X, I(3)), (X, I(0)))
def for_range_uses_index(x, n):
    total = paddle.zeros([], "int64")
    for i in range(n):
        total = total + i * i
    return total


@case((X, I(9)), (X, I(2)))
def for_range_bounds(x, n):
    k = 0
    for i in range(2, n, 3):
        x = x * 2 + i.astype("float32") if hasattr(i, "astype") else x * 2 + i
        k += 1
    return x, k


@case((X, I(-7)), (X, I(4)))
def for_range_down(x, n):
    k = 0
    for i in range(3, n, -2):
        k += 1
    return x * k


@case((X, I(4)))
def for_range_nested(x, n):
    k = 0
    for i in range(n):
        for j in range(i):
            k += 1
    return k


@case((X, I(5)), (X, I(2)))
def for_range_break(x, n):
    for i in range(n):
        x = x + 1
        if x.sum() > 12:
            break
    return x


@case((X, I(6)))
def for_range_continue(x, n):
    k = 0
    for i in range(n):
        if i % 2 == 0:
            continue
        k += 1
    return k


@case((X, I(5)), (X, I(1)))
def for_range_return(x, n):
    for i in range(n):
        x = x + 1
        if x.sum() > 12:
            return x
    return x * 0


@case(X, T(9.0, 9.0, 9.0))
def for_constant_break(x):
    for i in range(5):
        x = x + i
        if x.sum() > 10:
            break
    return x


@case(X, T(90.0, 9.0, 9.0))
def for_long_constant_break(x):
    for i in range(100):
        x = x + 1
        if x.sum() > 50:
            break
    return x


@case(X, T(9.0, 9.0, 9.0))
def for_break_before(x):
    for i in range(4):
        if x.sum() > 10:
            break
        x = x + i
    return x


@case(X, T(9.0, 9.0, 9.0))
def for_constant_continue(x):
    for i in range(5):
        if x.sum() > 10:
            continue
        x = x + i
    return x


@case(X, T(9.0, 9.0, 9.0))
def for_constant_return(x):
    for i in range(5):
        x = x + i
        if x.sum() > 10:
            return x * 2
    return x


@case(X, T(9.0, 9.0, 9.0), T(100.0, 0.0, 0.0))
def for_else(x):
    for i in range(3):
        x = x + i
        if x.sum() > 20:
            break
    else:
        x = -x
    return x


@case((X, 3), (X, 0))
def for_else_python(x, n):
    for i in range(n):
        if i == 2:
            break
        x = x + i
    else:
        x = x * 10
    return x


# ---- for over tensors and sequences


@case(T([1.0, 2.0], [3.0, 4.0]), open_dims=True)
def for_tensor(x):
    total = paddle.zeros([2])
    for row in x:
        total = total * 2 + row
    return total


@case(T([1.0, 2.0], [3.0, 4.0], [5.0, -6.0]), open_dims=True)
def for_tensor_if(x):
    total = paddle.zeros([2])
    for row in x:
        if row.sum() > 0:
            total = total + row
        else:
            total = total - row
    return total


@case(T([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]), T([9.0, 2.0], [3.0, 4.0]), open_dims=True)
def for_tensor_break(x):
    total = paddle.zeros([2])
    for row in x:
        if total.sum() > 5:
            break
        total = total + row
    return total


@case(T([1.0, 2.0], [3.0, 4.0]), open_dims=True)
def for_enumerate_tensor(x):
    total = paddle.zeros([2])
    for i, row in enumerate(x):
        total = total + row * i
    return total


@case(T([1.0, 2.0], [3.0, 4.0]), open_dims=True)
def for_enumerate_from(x):
    total = paddle.zeros([2])
    for i, row in enumerate(x, 3):
        total = total + row * i
    return total


@case((T([1.0, 2.0], [3.0, 4.0]), T([5.0, 6.0], [7.0, 8.0])), open_dims=True)
def for_zip_tensors(x, y):
    total = paddle.zeros([2])
    for a, b in zip(x, y):
        total = total + a * b
    return total


@case((T([1.0, 2.0], [3.0, 4.0]), T([5.0, 6.0], [7.0, 8.0])), open_dims=True)
def for_enumerate_zip(x, y):
    total = paddle.zeros([2])
    for i, (a, b) in enumerate(zip(x, y)):
        total = total + a * b * i
    return total


@case(T([1.0, 2.0], [3.0, 4.0]), open_dims=True)
def for_reversed(x):
    total = paddle.zeros([2])
    for row in reversed([1, 2, 3]):
        total = total * 2 + row
    for i in range(x.shape[0]):
        total = total + x[i] * 3
    return total


@case(([X, X],), ((X, X, X),), ([],))
def for_list(parts):
    total = paddle.zeros([3])
    for part in parts:
        total = total + part * 2
    return total


@case(([T(1.0), T(-2.0)],))
def for_list_if(parts):
    kept = paddle.zeros([1])
    for i, part in enumerate(parts):
        if part.sum() > 0:
            kept = kept + part * (i + 1)
    return kept


@case(({"a": X, "b": X},))
def for_dict(parts):
    total = paddle.zeros([3])
    for key, value in parts.items():
        total = total + value
        if key == "b":
            total = total * 2
    for key in parts:
        total = total + len(key)
    return total


@case(([X, X], [1, 2, 3]))
def for_zip_list(parts, factors):
    return [part * k for part, k in zip(parts, factors)]


@case("abc")
def for_string(text):
    out = []
    for c in text:
        if c == "b":
            continue
        out.append(c)
    return out


@case(([1, [2, 3]], ), ([4, [5, 6]],))
def for_unpacking(pair):
    out = []
    for i, (a, (b, *c)) in [(1, (2, [3, 4])), (5, (6, [7]))]:
        out.append((i, a, b, c))
    return out, pair


@case((X, 2), (X, 5))
def return_in_nested_loops(x, n):
    for i in range(4):
        for j in range(4):
            if i * j == n:
                return x, i, j
            x = x + 1
    return x, "none"


@case((X, 2), (X, 5), (X, 100))
def break_in_nested_loops(x, n):
    steps = 0
    for i in range(4):
        for j in range(4):
            if i * j > n:
                break
            steps += 1
        else:
            steps += 100
            continue
        steps += 1000
        if steps > 2000:
            break
    return x, steps


@case(X, T(30.0, 0.0, 0.0))
def nested_break_on_tensor(x):
    for i in range(3):
        for j in range(3):
            x = x + 1
            if x.sum() > 15:
                break
        if x.sum() > 30:
            break
    return x


@case((X, 0), (X, 1), (X, 2), (X, 3), (X, 4))
def returns_everywhere(x, n):
    if n == 0:
        return x, "zero"
    for i in range(n):
        if i == 2:
            return x, "two"
        with paddle.no_grad():
            if n == 2 and i == 1:
                return x, "with"
            try:
                if n == 1:
                    return x, "try"
            finally:
                x = x + 1
    else:
        if n == 3:
            return x, "else"
    return x, "end"


@case((X, 3), (X, 0), (X, -1))
def return_in_try(x, n):
    try:
        if n < 0:
            raise ValueError("negative")
        return x / n if n else 1 // n
    except ZeroDivisionError:
        return x, "division"
    except ValueError as error:
        return str(error)


@case((X, 0), (X, 3), (X, 6))
def early_returns(x, n):
    if n > 5:
        return x + 5
    y = x * 2
    if n > 2:
        z = y + 2
        if n > 3:
            return z
        y = z * 3
    else:
        if n == 0:
            return y
    return y - 1


@case(T(1.0), T(4.0), T(7.0), T(-1.0))
def early_returns_on_tensors(x):
    if x.sum() > 5:
        return x + 5
    y = x * 2
    if x.sum() > 2:
        z = y + 2
        if x.sum() > 3:
            return z
        y = z * 3
    else:
        if x.sum() < 0:
            return y
    return y - 1


@case((X, I(4)), (X, I(0)))
def nothing_returned(x, n):
    for i in range(n):
        x = x + 1
    return None


@case((X, I(4)), (X, I(2)))
def loop_over_shapes(x, n):
    out = paddle.zeros([3])
    for i in range(x.shape[0]):
        out = out + x[i]
    for i in range(len(x)):
        out = out * 2
    return out


@case((X, I(3)))
def random_shape_kept(x, n):
    k = paddle.zeros([1])
    i = paddle.zeros([1], "int64")
    while i < n:
        k = k + x.sum()
        i = i + 1
    return k, i


@case((X, I(2)))
def augmented_in_loop(x, n):
    for _ in range(n):
        x += 1
        x *= 2
    return x


@case((X, I(3)))
def loop_writes_items(x, n):
    y = paddle.zeros([3])
    for i in range(n):
        y[i] = x[i] * 2
    return y


@case((X, I(3)))
def loop_sets_attribute_like(x, n):
    box = {"sum": paddle.zeros([])}
    for i in range(n):
        box["sum"] = box["sum"] + x.sum()
    return box


@case((X, I(2)), (X, I(3)))
def bound_only_in_loop(x, n):
    for i in range(n):
        y = x + i
    return y * i


@case((X, I(2)), (X, I(0)), error="y is bound only in the loop")
def bound_only_in_while(x, n):
    while n > 0:
        n = n - 1
        y = x + 1
    return y


@case((X, I(2)), (X, I(0)), (X, I(5)))
def grows_in_loop(x, n):
    out = []
    for i in range(n):
        out.append(x + 1)
    return out


@case((X, I(3)), (X, I(1)))
def stacks_what_grew(x, n):
    out = [x * 2]
    i = n * 0
    while i < n:
        out.append(out[-1] * 0.5 + x)
        i = i + 1
    return paddle.stack(out), paddle.concat(out, 0), len(out)


@case((X, I(4)), (X, I(2)))
def grows_in_a_branch(x, n):
    out = []
    for i in range(n):
        if i % 2 == 0:
            out.append(x + i)
    return paddle.stack(out, 1)


@case((X, I(3)))
def reads_what_grew(x, n):
    seen, total = [], x * 0
    for i in range(n):
        seen.append(x * i)
    for one in seen:
        total = total + one
    for i, one in enumerate(seen):
        total = total + one * i
    return total, seen[0], len(seen)


@case((X, I(2)), error="out is a list of 0 before the loop and a list of 1 after a turn of it")
def numbers_grow_in_loop(x, n):
    out = []
    for i in range(n):
        out.append("a")
    return x, out


@case((X, I(2)), error="y is a float32 tensor of shape [3] before the loop")
def dtype_changes_in_loop(x, n):
    y = x
    for i in range(n):
        y = y.astype("int64")
    return y


@case((X, I(2)), error="mode is 'a' before the loop and 'b' after a turn of it")
def string_changes_in_loop(x, n):
    mode = "a"
    for i in range(n):
        mode = "b"
    return x, mode
