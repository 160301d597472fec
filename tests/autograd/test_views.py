"""Views and writes through them: gradients, programs, and what is refused. Which results are views at all is compared
with Paddle in tests/parity/cases/aliasing.py."""
import numpy as np
import pytest
import proa as paddle

PARTS = {
    "real": lambda z: paddle.real(z), "imag": lambda z: paddle.imag(z), "pairs": lambda z: paddle.as_real(z)[:, 1:],
    "row": lambda z: paddle.unbind(z)[1], "pair of transposed": lambda z: paddle.as_real(z.reshape([2, 2]).t())[0, :, 0],
}


@pytest.mark.parametrize("name", PARTS)
def test_gradient_of_a_write_to_a_part(name):
    values = np.array([1 + 2j, 3 - 1j, 0.5 + 0.25j, -2 + 1j])

    def loss(numbers):
        w = paddle.to_tensor(numbers, stop_gradient=False)
        z = w * (1.0 + 0.5j)
        PARTS[name](z).scale_(3.0)
        size = paddle.abs(z)
        return w, (size * size * paddle.to_tensor([1.0, 2.0, 3.0, 4.0], "float64")).sum()

    w, total = loss(values)
    total.backward()
    step, numeric = 1e-6, np.zeros(4, complex)
    for i in range(4):
        for unit in (1, 1j):
            moved = np.zeros(4, complex)
            moved[i] = unit * step
            slope = (float(loss(values + moved)[1]) - float(loss(values - moved)[1])) / (2 * step)
            numeric[i] += unit * slope
    np.testing.assert_allclose(w.grad.numpy(), numeric, rtol=1e-6, atol=1e-6)


def test_gradient_of_a_write_as_complex():
    w = paddle.to_tensor([1.0, 2.0, 3.0, 4.0], stop_gradient=False)
    y = w * 1.0
    paddle.as_complex(y.reshape([2, 2])).scale_(2.0)
    (y * y).sum().backward()
    assert y.tolist() == [2.0, 4.0, 6.0, 8.0] and w.grad.tolist() == [8.0, 16.0, 24.0, 32.0]


def test_writes_that_have_no_gradient_are_refused():
    w = paddle.ones([4])
    w.stop_gradient = False
    y = w * 1.0
    with pytest.raises(NotImplementedError, match="several times"):
        y.unfold(0, 2, 1).scale_(2.0)
    apart = w * 1.0
    apart.unfold(0, 2, 2).scale_(2.0)
    apart.sum().backward()
    assert w.grad.tolist() == [2.0] * 4


def test_arrays_do_not_reach_what_backward_saved():
    x = paddle.ones([3])
    x.stop_gradient = False
    y = x * 1
    z = y * y
    np.asarray(y.detach())[0] = 7
    z.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    with pytest.raises(TypeError):
        memoryview(x)


def test_an_expanded_tensor_in_a_program_is_a_copy():
    def step(x):
        y = x * 2.0
        wide = y.expand([2, 3])
        y.add_(paddle.ones([3]))
        wide.scale_(10.0)
        return wide, y

    x = paddle.to_tensor([1.0, 2.0, 3.0])
    for a, b in zip(step(x), paddle.jit.to_static(step)(x)):
        assert a.tolist() == b.tolist()


def test_nothing_selected_by_a_matrix_of_indices():
    x = paddle.ones([1, 3])
    x[np.array([[0, -1, -1]]), 3:] = 5.0
    assert x.tolist() == [[1.0] * 3]


@pytest.mark.parametrize("part", [(slice(None), slice(0, 1)), (slice(None), slice(1, None, 2))])
def test_a_part_is_replaced_by_its_norm(part):
    """As models do whose tokens share a tensor: the op got a copy of the view, and the copy is what its backward reads."""
    values = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 3, 4)))
    weights = paddle.to_tensor(np.random.default_rng(1).normal(size=(2, 3, 4)))
    found = []
    for copied in (False, True):
        leaf = values.clone().detach()
        leaf.stop_gradient = False
        x = leaf * 1.0
        x[part] = paddle.nn.functional.layer_norm(x[part].clone() if copied else x[part], [4])
        (x * weights).sum().backward()
        found.append(leaf.grad.numpy())
    np.testing.assert_array_equal(*found)


def test_gradients_of_gradients_through_a_saved_copy():
    leaf = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 3, 4)), stop_gradient=False)
    found = []
    for copied in (False, True):
        view = (leaf * 1.0)[:, 0:1]
        y = paddle.nn.functional.layer_norm(view.clone() if copied else view, [4])
        first, = paddle.grad((y ** 3).sum(), leaf, create_graph=True)
        second, = paddle.grad((first ** 2).sum(), leaf)
        found.append(second.numpy())
    np.testing.assert_allclose(*found, 1e-12)
