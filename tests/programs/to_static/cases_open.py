"""Tensors of unknown dims: slices up to them, items and lists that grow, all as Python has it."""
import proa as paddle
import proa.nn.functional as F
from harness import I, S, T, collector

CASES, case = collector()
X = T(1.0, 2.0, 3.0)
M = T([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
M2 = T([-1.0, 2.0], [3.0, -4.0])


@case(X, T(5., 1., 2., 3.), open_dims=True)
def head_of(x):
    n = x.shape[0]
    return x[:n - 1], x[1:n], x[-(n - 1):], x[n // 2:], x[:n:2]


@case(M, M2, open_dims=True)
def slice_2d(x):
    n, m = x.shape
    return x[:n - 1, 1:m], x[0, :m - 1], x[..., :m - 1], x[None, : n - 1]


@case(X, T(5., 1., 2., 3.), open_dims=True)
def slice_set(x):
    n = x.shape[0]
    y = x + 0
    y[:n - 1] = 7.0
    y[n - 1:] = x[:1]
    return y


@case(X, T(5., 1., 2., 3.), open_dims=True)
def slice_add(x):
    n = x.shape[0]
    y = x + 0
    y[1:n] += x[:n - 1]
    return y


@case((M, I(1)), (M2, I(0)))
def slice_by_tensor(x, k):
    return x[k[0]:], x[:k[0] + 1, k[0]]


@case((M, S(1, "int32")), (M2, S(0, "int32")))
def slice_by_int32(x, k):
    return x[k:], x[:k + 1, k]


@case(X, T(5., 1., 2., 3.), open_dims=True)
def rolling_windows(x):
    t = x[:2] * 0
    for i in range(x.shape[0] - 1):
        t = t + x[i:i + 2]
    return t


@case(X, T(5., 1., 2., 3.), open_dims=True)
def prefix_sums(x):
    t = paddle.zeros([1])
    for i in range(x.shape[0]):
        t = t + x[:i + 1].sum()
    return t


@case(X, T(5., 1., 2., 3.), open_dims=True)
def new_tensor_of_shape(x):
    n = x.shape[0]
    return paddle.zeros([n, 2]), paddle.arange(n), paddle.ones([n + 1]), paddle.full([n], n), paddle.to_tensor([n, 2]), paddle.to_tensor([[n, 1], [2, n * 2]])


@case(M, M2, open_dims=True)
def reshape_open(x):
    n, m = x.shape
    return x.reshape([n * m]), x.reshape([m, n]), paddle.tile(x, [1, m]), x.transpose([1, 0]).reshape([-1, n])


@case(M, M2, open_dims=True)
def scale_by_shape(x):
    n, m = x.shape
    return x / m ** 0.5, x * (n / m), x.sum() / (n * m), (n - 1) / 2 - x, x * (1.0 / n)


@case(M, M2, open_dims=True)
def mask_causal(x):
    n = x.shape[0]
    mask = paddle.tril(paddle.ones([n, n]))
    return paddle.matmul(mask, x), (1 - mask) * -1e9


@case(M, M2, open_dims=True)
def condition_on_shape(x):
    if x.shape[0] > 2:
        return x * 2
    return x - 1


@case(M, M2, open_dims=True)
def pad_to_even(x):
    n = x.shape[0]
    if n % 2:
        x = F.pad(x, [0, 1, 0, 0])
    return x


@case(M, M2, open_dims=True)
def split_half(x):
    m = x.shape[-1]
    a, b = x[..., :m // 2], x[..., m // 2:]
    return paddle.concat([-b, a], axis=-1)


@case(M, M2, open_dims=True)
def flipping(x):
    n = x.shape[0]
    idx = paddle.arange(n - 1, -1, -1)
    return paddle.gather(x, idx), x[::-1], paddle.flip(x, [0])


@case(M, M2, open_dims=True)
def position_grid(x):
    n, m = x.shape
    gy, gx = paddle.meshgrid(paddle.arange(n), paddle.arange(m))
    return gy, gx, paddle.stack([gy, gx])


@case(M, M2, open_dims=True)
def expand_dims(x):
    n, m = x.shape
    return paddle.expand(x.unsqueeze(0), [2, n, m]), paddle.broadcast_to(x, [2, n, m])


@case(M, M2, open_dims=True)
def set_rows(x):
    y = paddle.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] * i
    return y


@case(M, M2, open_dims=True)
def set_cols(x):
    y = paddle.zeros_like(x)
    for j in range(x.shape[1]):
        y[:, j] = x[:, j] * (j + 1)
    return y


@case(M, M2, open_dims=True)
def append_rows(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * i)
    return paddle.stack(rows)


@case(M, M2, open_dims=True)
def append_then_index(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * i)
    return rows[0] + rows[-1], len(rows)


@case(M, M2, open_dims=True)
def append_then_slice(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * i)
    return paddle.stack(rows[1:]), paddle.concat(rows[:1])


@case(M, M2, open_dims=True)
def append_then_reverse(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * i)
    rows = rows[::-1]
    return paddle.stack(rows)


@case(M, M2, open_dims=True)
def append_then_loop(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * i)
    t = x[0] * 0
    for r in rows:
        t = t * 2 + r
    return t


@case(M, M2, open_dims=True)
def append_then_reversed_loop(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * i)
    t = x[0] * 0
    for r in reversed(rows):
        t = t * 2 + r
    return t


@case(M, M2, open_dims=True)
def two_way(x):
    # BasicVSR: backwards, then forwards with what was kept
    n = x.shape[0]
    kept = []
    state = x[0] * 0
    for i in range(n - 1, -1, -1):
        state = state * 0.5 + x[i]
        kept.append(state)
    kept = kept[::-1]
    state = x[0] * 0
    for i in range(n):
        state = state * 0.5 + x[i]
        kept[i] = kept[i] + state
    return paddle.stack(kept, axis=0)


@case(M, M2, open_dims=True)
def write_item(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * i)
    rows[0] = rows[0] + 100
    return paddle.stack(rows)


@case(M, M2, open_dims=True)
def extend_rows(x):
    rows = []
    for i in range(x.shape[0]):
        rows.extend([x[i], x[i] * 2])
    return paddle.stack(rows)


@case(M, M2, open_dims=True)
def pop_last(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * i)
    last = rows.pop()
    return last, paddle.stack(rows)


@case(M, M2, open_dims=True)
def return_the_list(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * i)
    return rows


@case(M, M2, open_dims=True)
def zip_grown(x):
    a, b = [], []
    for i in range(x.shape[0]):
        a.append(x[i] * i)
        b.append(x[i] + i)
    t = x[0] * 0
    for p, q in zip(a, b):
        t = t + p * q
    return t
