"""Functions that real Paddle has for GPUs alone: margin_cross_entropy, sparse_attention and top_p_sampling against their
formulas in NumPy, gradients against finite differences."""
import numpy as np
import pytest

import proa as paddle

F = paddle.nn.functional
MARGINS = [(1.0, 0.5, 0.0), (1.35, 0.0, 0.0), (1.0, 0.0, 0.4), (0.9, 0.4, 0.15), (1.0, 0.0, 0.0)]


def rng():
    return np.random.default_rng(0)


def differences(f, x, eps=1e-6):
    """Gradient of a scalar function at a float64 array, by central differences."""
    found = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = eps
        found[i] = (f(x + step) - f(x - step)) / (2 * eps)
    return found


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def margin_losses(cosines, label, margins, scale):
    m1, m2, m3 = margins
    logits, rows = cosines.copy(), np.arange(len(label))
    logits[rows, label] = np.cos(m1 * np.arccos(cosines[rows, label]) + m2) - m3
    chances = softmax(logits * scale)
    return -np.log(chances[rows, label])[:, None], chances


@pytest.mark.parametrize("margins", MARGINS)
def test_margin_cross_entropy(margins):
    cosines, label = rng().uniform(-0.9, 0.9, (5, 7)), rng().integers(0, 7, 5)
    losses, chances = margin_losses(cosines, label, margins, 8.0)
    x = paddle.to_tensor(cosines, stop_gradient=False)
    loss, made = F.margin_cross_entropy(x, paddle.to_tensor(label), *margins, 8.0, return_softmax=True, reduction=None)
    np.testing.assert_allclose(loss.numpy(), losses, 1e-10)
    np.testing.assert_allclose(made.numpy(), chances, 1e-10)
    F.margin_cross_entropy(x, paddle.to_tensor(label[:, None]), *margins, 8.0, reduction="sum").backward()
    wanted = differences(lambda v: margin_losses(v, label, margins, 8.0)[0].sum(), cosines)
    np.testing.assert_allclose(x.grad.numpy(), wanted, 1e-5, 1e-6)


def test_a_cosine_of_one_beside_the_label_has_a_gradient():
    x = paddle.to_tensor([[1.0, 0.5]], stop_gradient=False)
    F.margin_cross_entropy(x, paddle.to_tensor([1])).backward()
    assert np.isfinite(x.grad.numpy()).all()


def attention(q, k, v, taken):
    scores = np.where(taken, q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -1e30)
    return (softmax(scores) * taken) @ v


@pytest.mark.parametrize("masks", [False, True])
def test_sparse_attention(masks):
    r = rng()
    q, k, v = (r.normal(size=(2, 2, 5, 3)) for _ in range(3))
    taken = r.integers(0, 2, (2, 2, 5, 5)).astype(bool)
    taken[..., 0] = True
    counts = taken.sum(-1)
    pairs = counts.sum(-1).max()  # a head with fewer has padding behind its last offset
    offset = np.concatenate([np.zeros((2, 2, 1), int), counts.cumsum(-1)], -1).astype("int32")
    columns = np.zeros((2, 2, pairs), "int32")
    for at in np.ndindex(2, 2):
        found = np.nonzero(taken[at])[1]
        columns[at][:len(found)] = found
    more = {}
    if masks:
        padding, mask = r.integers(0, 2, (2, 5)).astype("float64"), r.integers(0, 2, (5, 5)).astype("float64")
        taken = taken & (padding[:, None, None] != 0) & (mask != 0)
        more = {"key_padding_mask": paddle.to_tensor(padding), "attn_mask": paddle.to_tensor(mask)}
    given = [paddle.to_tensor(a, stop_gradient=False) for a in (q, k, v)]
    out = F.sparse_attention(*given, paddle.to_tensor(offset), paddle.to_tensor(columns), **more)
    np.testing.assert_allclose(out.numpy(), attention(q, k, v, taken), 1e-10, 1e-12)
    weights = r.normal(size=q.shape)
    (out * paddle.to_tensor(weights)).sum().backward()
    for i, one in enumerate(given):
        def loss(value):
            return (attention(*[value if n == i else a for n, a in enumerate((q, k, v))], taken) * weights).sum()
        np.testing.assert_allclose(one.grad.numpy(), differences(loss, one.numpy()), 1e-5, 1e-6)


def test_sparse_attention_as_paddle_documents_it():
    x = paddle.to_tensor([[[[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [2.0, 3.0]]]])
    offset = paddle.to_tensor([[[0, 2, 4, 6, 8]]], dtype="int32")
    columns = paddle.to_tensor([[[0, 1, 0, 1, 2, 3, 2, 3]]], dtype="int32")
    wanted = [[1.60885942, 2.60885954], [1.99830270, 2.99830270]] * 2
    np.testing.assert_allclose(F.sparse_attention(x, x, x, offset, columns).numpy()[0, 0], wanted, 1e-6)


def test_top_p_sampling_draws_by_probability():
    chances = np.array([0.05, 0.5, 0.15, 0.3])
    x, n = paddle.to_tensor(np.tile(chances, (4000, 1)).astype("float32")), 4000
    paddle.seed(1)
    value, index = paddle.tensor.top_p_sampling(x, paddle.full([n], 0.8))
    found = np.bincount(index.numpy().reshape(-1), minlength=4) / n
    np.testing.assert_allclose(found, [0, 0.5 / 0.8, 0, 0.3 / 0.8], atol=0.03)
    np.testing.assert_array_equal(value.numpy(), chances.astype("float32")[index.numpy()])
    value, index = x.top_p_sampling(paddle.full([n], 1.0), paddle.full([n], 0.2))
    assert set(index.numpy().reshape(-1)) == {1, 3}
    assert paddle.tensor.top_p_sampling(x, paddle.full([n], 0.0))[1].numpy().max() == 1
