"""Gradients that are SelectedRows: what ops refuse, what a step costs, loss scaling, weight decay."""
import pickle

import numpy as np
import pytest

import proa as paddle
from proa import _core

F = paddle.nn.functional


def looked_up(rows=6, length=4, ids=(1, 3, 3, 0), scale=1.0):
    w = paddle.to_tensor(np.arange(rows * length, dtype="float32").reshape(rows, length), stop_gradient=False)
    (F.embedding(paddle.to_tensor(list(ids)), w, sparse=True) * scale).sum().backward()
    return w


@pytest.mark.parametrize("use", [
    lambda g: g + g, lambda g: g + 1.0, lambda g: 1.0 / g, lambda g: g[0], lambda g: g.sum(), lambda g: g.T,
    lambda g: paddle.matmul(g, g), lambda g: paddle.concat([g, g]), lambda g: g.reshape([-1]), lambda g: g * g,
    lambda g: paddle.clip(g, -1.0, 1.0), lambda g: F.relu(g), lambda g: g.zero_(), lambda g: list(g)])
def test_ops_refuse_rows_by_name(use):
    with pytest.raises(NotImplementedError, match=r"^\(\w+\) \w+: .*rows of 6"):
        use(looked_up().grad)


def test_other_sizes_are_refused():
    g = looked_up().grad
    with pytest.raises(ValueError, match="must be one number"):
        g * paddle.ones([6, 4])
    with pytest.raises(ValueError, match="more axes"):
        paddle.multiply(g, paddle.ones([1, 1, 1]))
    with pytest.raises(NotImplementedError, match="cannot have a gradient"):
        g.stop_gradient = False
    with pytest.raises(TypeError, match="SelectedRows"):
        pickle.dumps(g)
    w = paddle.ones([5, 4])
    w.stop_gradient = False
    with pytest.raises(ValueError, match="set_grad"):
        w.grad = g


def test_numbers_go_through():
    g = looked_up().grad
    for made in (g * 2, 2 * g, g / 0.5, g * paddle.to_tensor([2.0]), paddle.scale(g, 2.0)):
        assert made.is_selected_rows() and made.rows() == [1, 3, 3, 0]
        np.testing.assert_array_equal(made.numpy(), 2 * np.ones((4, 4), "float32"))
    assert g.astype("float64").is_selected_rows() and g.clone().is_selected_rows() and g.detach().rows() == g.rows()
    assert "height=6" in str(g) and "rows=[1, 3, 3, 0]" in repr(g)


def test_a_second_derivative_is_dense():
    w, x = paddle.ones([5, 2]), paddle.to_tensor([1, 3])
    w.stop_gradient = False
    first, = paddle.grad((F.embedding(x, w, sparse=True) ** 3).sum(), w, create_graph=True)
    second, = paddle.grad(first.sum(), w)
    assert first.is_dense() and second.rows() == [1, 3]  # nothing is recorded of the last one
    np.testing.assert_allclose(_core.rows_to_dense(second).numpy()[:, 0], [0, 6, 0, 6, 0])


def test_hooks_see_and_change_rows():
    w = paddle.ones([5, 2])
    w.stop_gradient = False
    seen = []
    w.register_hook(lambda g: seen.append(g.rows()))
    w.register_hook(lambda g: g * 3)
    F.embedding(paddle.to_tensor([4, 4]), w, sparse=True).sum().backward()
    assert seen == [[4, 4]] and w.grad.is_selected_rows()
    np.testing.assert_array_equal(w.grad.numpy(), np.full((2, 2), 3, "float32"))


def test_later_writes_do_not_change_the_gradient():
    w, x = paddle.ones([5, 2]), paddle.to_tensor([4, 1])
    w.stop_gradient = False
    out = F.embedding(x, w, sparse=True)
    out.retain_grads()
    out.sum().backward()
    with paddle.no_grad():
        x.fill_(0)
        out.grad.fill_(7.0)
    assert w.grad.rows() == [4, 1]
    np.testing.assert_array_equal(w.grad.numpy(), np.ones((2, 2), "float32"))


def test_unscaling_finds_infinities():
    good, bad = looked_up(scale=8.0), looked_up(scale=float("inf"))
    scale = paddle.to_tensor([8.0])
    assert not bool(_core.check_finite_and_unscale([good.grad], scale))
    np.testing.assert_array_equal(good.grad.numpy(), np.ones((4, 4), "float32"))
    assert bool(_core.check_finite_and_unscale([bad.grad], scale))


def test_clip_by_value_counts_equal_rows_together():
    w = looked_up()
    (_, g), = paddle.nn.ClipGradByValue(1.5)([(w, w.grad)])
    assert g.rows() == [0, 1, 3]
    np.testing.assert_array_equal(g.numpy()[:, 0], [1.0, 1.0, 1.5])


def test_adam_refuses_weight_decay():
    w = looked_up()
    with pytest.raises(RuntimeError, match="weight_decay does not go with sparse"):
        paddle.optimizer.Adam(parameters=[w], weight_decay=0.1).step()


def test_padding_row_moves_alike_where_the_gradient_has_to_be_dense():
    w, x = paddle.ones([4, 2]), paddle.to_tensor([0, 1, 0])
    w.stop_gradient = False
    recorded, = paddle.grad(F.embedding(x, w, padding_idx=0, sparse=True).sum(), w, create_graph=True)
    compiled = paddle.jit.to_static(lambda w: F.embedding(x, w, padding_idx=0, sparse=True).sum())
    compiled(w).backward()
    for dense in (recorded, w.grad):
        np.testing.assert_array_equal(dense.numpy(), [[2, 2], [1, 1], [0, 0], [0, 0]])


@pytest.mark.parametrize("name", ["AdamW", "Adamax", "Adadelta"])
def test_optimizers_beyond_paddles(name):
    """Paddle's own have no kernel for rows: here zeros elsewhere, as with the dense gradient."""
    tables = []
    for sparse in (True, False):
        w = paddle.to_tensor(np.arange(24, dtype="float32").reshape(6, 4), stop_gradient=False)
        o = getattr(paddle.optimizer, name)(0.1, parameters=[w])
        for _ in range(3):
            (F.embedding(paddle.to_tensor([5, 0, 5]), w, sparse=sparse) ** 2).sum().backward()
            o.step()
            o.clear_grad()
        tables.append(w.numpy())
    np.testing.assert_allclose(*tables, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(dtype):
    w = paddle.ones([6, 3]).astype(dtype)
    w.stop_gradient = False
    o = paddle.optimizer.SGD(0.25, parameters=[w])
    F.embedding(paddle.to_tensor([2, 2, 5]), w, sparse=True).sum().backward()
    o.step()
    np.testing.assert_array_equal(w.astype("float32").numpy()[:, 0], [1, 1, 0.5, 1, 1, 0.75])


def test_a_step_costs_what_it_touches():
    """A table of a million rows of which a hundred are touched: 256 MB that no step may need again."""
    w = paddle.create_parameter([1000000, 64], "float32", default_initializer=paddle.nn.initializer.Constant(0.1))
    ids = paddle.to_tensor(np.random.RandomState(0).randint(0, 1000000, [100]))
    for make in (lambda: paddle.optimizer.SGD(0.1, parameters=[w]),
                 lambda: paddle.optimizer.Adam(0.1, parameters=[w], lazy_mode=True)):
        o = make()
        for repeat in range(2):
            if repeat:  # accumulators are there now
                _core.set_memory_cap(_core.live_bytes() + (1 << 20))
            try:
                F.embedding(ids, w, sparse=True).sum().backward()
                o.step()
                o.clear_grad()
            finally:
                _core.set_memory_cap(0)


def test_ctc_and_trees_refuse_bad_input():
    logits, labels = paddle.rand([4, 1, 3]), paddle.to_tensor([[1, 7]], "int32")
    with pytest.raises(IndexError, match="label"):
        F.ctc_loss(logits, labels, paddle.to_tensor([4]), paddle.to_tensor([2]))
    with pytest.raises(IndexError, match="logits_length"):
        F.ctc_loss(logits, labels, paddle.to_tensor([5]), paddle.to_tensor([1]))
    with pytest.raises(IndexError, match="blank"):
        F.ctc_loss(logits, labels, paddle.to_tensor([4]), paddle.to_tensor([1]), blank=3)
    with pytest.raises(IndexError, match="label"):
        F.hsigmoid_loss(paddle.rand([1, 2]), paddle.to_tensor([[6]]), 6, paddle.rand([5, 2]))
    with pytest.raises(IndexError, match="node"):
        F.hsigmoid_loss(paddle.rand([1, 2]), paddle.to_tensor([[5]]), 6, paddle.rand([2, 2]))
    with pytest.raises(IndexError, match="parents"):
        F.gather_tree(paddle.zeros([2, 1, 2], "int64"), paddle.full([2, 1, 2], 2, "int64"))
