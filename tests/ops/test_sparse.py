"""paddle.sparse where real Paddle has no CPU kernels: against dense tensors, values and gradients."""
import numpy as np
import proa as paddle
import pytest
from proa import sparse


def pair(shape, seed=0, form="coo"):
    """A sparse tensor and the dense one of the same values, both leaves that want gradients."""
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random(shape) < 0.4, rng.standard_normal(shape), 0).astype("float64")
    made = paddle.to_tensor(dense).to_sparse_coo(len(shape)).detach()
    made = made.to_sparse_csr() if form == "csr" else made
    made.stop_gradient = False
    return made, paddle.to_tensor(dense, stop_gradient=False)


def check(made, want, sparse_leaves=(), dense_leaves=(), others=()):
    """Equal, and of equal gradients where something is stored. others: pairs of dense leaves."""
    got = made.to_dense() if made.is_sparse() else made
    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-12)
    weights = paddle.to_tensor(np.cos(np.arange(want.size)).reshape(want.shape))
    (got * weights).sum().backward()
    (want * weights).sum().backward()
    for s, d in zip(sparse_leaves, dense_leaves):
        there = s.with_values(paddle.ones([s.nnz()], "float64")).to_dense()
        np.testing.assert_allclose(s.grad.to_dense().numpy(), (d.grad * there).numpy(), atol=1e-12)
    for a, b in others:
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), atol=1e-12)


def leaves(*shape):
    value = np.random.default_rng(7).standard_normal(shape)
    return paddle.to_tensor(value, stop_gradient=False), paddle.to_tensor(value, stop_gradient=False)


@pytest.mark.parametrize("form", ["coo", "csr"])
@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 6)])
def test_matmul_dense(form, shape):
    x, dense = pair(shape, form=form)
    y, z = leaves(*shape[:-2], 6, 5)
    check(sparse.matmul(x, y), paddle.matmul(dense, z), [x], [dense], [(y, z)])


@pytest.mark.parametrize("form", ["coo", "csr"])
@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 6)])
def test_matmul_sparse(form, shape):
    x, dense = pair(shape, 1, form)
    y, other = pair((*shape[:-2], 6, 5), 2, form)
    made = sparse.matmul(x, y)
    assert type(made) is type(x)
    check(made, paddle.matmul(dense, other), [x, y], [dense, other])


@pytest.mark.parametrize("form", ["coo", "csr"])
def test_mv_addmm(form):
    x, dense = pair((4, 6), 3, form)
    v, w = leaves(6)
    check(sparse.mv(x, v), paddle.mv(dense, w), [x], [dense], [(v, w)])
    x, dense = pair((4, 6), 3, form)
    (a, b), (y, z) = leaves(4, 5), leaves(6, 5)
    check(sparse.addmm(a, x, y, 0.5, 2.0), 0.5 * b + 2.0 * dense @ z,
          [x], [dense], [(a, b), (y, z)])


@pytest.mark.parametrize("form", ["coo", "csr"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_masked_matmul(form, batch):
    mask, dense = pair((*batch, 4, 5), 4, form)
    (a, b), (y, z) = leaves(*batch, 4, 3), leaves(*batch, 3, 5)
    there = (dense != 0).astype("float64")
    made = sparse.masked_matmul(a, y, mask)
    assert made.nnz() == mask.nnz()
    check(made, paddle.matmul(b, z) * there, others=[(a, b), (y, z)])


@pytest.mark.parametrize("f", ["add", "subtract", "multiply"])
@pytest.mark.parametrize("form", ["coo", "csr"])
def test_binary_gradients(f, form):
    x, dense = pair((4, 6), 5, form)
    y, other = pair((4, 6), 6, form)
    check(getattr(sparse, f)(x, y), getattr(paddle, f)(dense, other), [x, y], [dense, other])


def test_softmax_rows():
    x, dense = pair((5, 6), 8, "csr")
    hidden = paddle.where(dense == 0, paddle.full([], -np.inf, "float64"), dense)
    full = paddle.nn.functional.softmax(hidden, -1)
    check(sparse.nn.functional.softmax(x), paddle.where(dense == 0, paddle.zeros_like(full), full), [x], [dense])


def test_attention():
    rng = np.random.default_rng(9)
    b, h, n, d = 2, 2, 5, 3
    there = rng.random((b * h, n, n)) < 0.5
    there |= np.eye(n, dtype=bool)
    q, k, v = (leaves(b, h, n, d) for _ in range(3))
    mask = paddle.to_tensor(there.astype("float64")).to_sparse_csr()
    padding, extra = paddle.to_tensor(rng.standard_normal((b, n))), paddle.to_tensor(rng.standard_normal((n, n)))
    made = sparse.nn.functional.attention(q[0], k[0], v[0], mask, padding, extra)
    scores = paddle.matmul(q[1], k[1], transpose_y=True) / d ** 0.5 + padding.reshape([b, 1, 1, n]) + extra
    hidden = paddle.where(paddle.to_tensor(there.reshape(b, h, n, n)), scores, paddle.full([], -1e300, "float64"))
    check(made, paddle.matmul(paddle.nn.functional.softmax(hidden, -1), v[1]), others=[q, k, v])


@pytest.mark.parametrize("subm", [False, True])
def test_conv2d(subm):
    rng = np.random.default_rng(10)
    there = rng.random((2, 5, 6)) < 0.3
    image = np.where(there[..., None], rng.standard_normal((2, 5, 6, 3)), 0)
    x = paddle.to_tensor(image).to_sparse_coo(3)
    w, u = leaves(3, 3, 3, 4)
    made = (sparse.nn.functional.subm_conv2d if subm else sparse.nn.functional.conv2d)(x, w, None, 1, 1)
    want = paddle.nn.functional.conv2d(paddle.to_tensor(image), u.transpose([3, 2, 0, 1]), None, 1, 1, data_format="NHWC")
    check(made, want * paddle.to_tensor(there[..., None].astype("float64")) if subm else want, others=[(w, u)])
    layer = (sparse.nn.SubmConv2D if subm else sparse.nn.Conv2D)(3, 4, 3, padding=1)
    assert layer(x.astype("float32")).shape == [2, 5, 6, 4]


def test_dense_ops_refuse():
    x, _ = pair((3, 4), 11)
    for call in (lambda: paddle.add(x, x), lambda: paddle.nn.functional.relu(x), lambda: paddle.matmul(x, paddle.ones([4, 2]))):
        with pytest.raises((NotImplementedError, TypeError, ValueError)):
            call()


def test_training_step():
    x, _ = pair((6, 8), 12, "csr")
    layer = paddle.nn.Linear(3, 2)
    opt = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    losses = []
    for _ in range(5):
        loss = (layer(sparse.matmul(x.astype("float32"), paddle.ones([8, 3]))) ** 2).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(float(loss))
    assert losses[-1] < losses[0]
