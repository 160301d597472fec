"""Tensors on shared memory: slices of one buffer as parameters and as gradients (fleet's ParamStorage, GradStorage)."""
import numpy as np
import pytest

import proa as paddle
from proa.distributed.fleet.meta_parallel.sharding.group_sharded_storage import GradStorage, ParamStorage


def two_layers():
    paddle.seed(3)
    return paddle.nn.Sequential(paddle.nn.Linear(3, 5), paddle.nn.ReLU(), paddle.nn.Linear(5, 2))


def fused(model, free=1):
    params = model.parameters()
    size, after = sum(p.size + free for p in params), {p.name: free for p in params}
    weights = ParamStorage(size, "float32", "cpu")
    weights.add_rank_params(params, after)
    grads = GradStorage(size, "float32", "cpu", 0, after)
    for param in params:
        grads.add_grad(param, free)
    return weights, grads


def test_a_model_in_two_buffers_trains_as_it_does_without():
    x, plain, model = paddle.randn([4, 3]), two_layers(), two_layers()
    weights, grads = fused(model)
    one = paddle.optimizer.Momentum(0.1, parameters=plain.parameters())
    other = paddle.create_parameter([weights.buffer.size], "float32")
    weights.buffer._share_buffer_to(other)
    other._copy_gradient_from(grads.buffer)
    step = paddle.optimizer.Momentum(0.1, parameters=[other])
    for _ in range(3):
        for part in x[:2], x[2:]:  # two backwards add up in the buffer
            plain(part).sum().backward()
            model(part).sum().backward()
        one.step()
        step.step()
        for p, q in zip(plain.parameters(), model.parameters()):
            np.testing.assert_array_equal(p.grad.numpy(), q.grad.numpy())
            np.testing.assert_array_equal(p.numpy(), q.numpy())
            assert q._is_shared_buffer_with(weights.buffer) and q.grad._is_shared_buffer_with(grads.buffer)
        one.clear_grad()
        step.clear_grad()
        assert not np.any(grads.buffer.numpy()) and not any(np.any(q.grad.numpy()) for q in model.parameters())


def test_a_captured_step_adds_to_the_buffer():
    model = two_layers()
    _, grads = fused(model)
    compiled = paddle.jit.to_static(model)
    compiled(paddle.ones([4, 3])).sum().backward()
    want = [p.grad.numpy() for p in model.parameters()]
    assert np.any(want[0]) and np.array_equal(grads.buffer.numpy()[:15], want[0].ravel())


def test_released_and_rebuilt():
    model = two_layers()
    _, grads = fused(model)
    model(paddle.ones([1, 3])).sum().backward()
    grads.manumal_relase()
    assert grads.buffer is None and all(p.grad is None for p in model.parameters())
    grads.rebuild()
    model(paddle.ones([1, 3])).sum().backward()
    assert np.any(grads.buffer.numpy()) and model[0].weight.grad._is_shared_buffer_with(grads.buffer)


def test_another_dtype_moves_the_parameters():
    model = two_layers()
    weights, _ = fused(model)
    before = [p.numpy() for p in model.parameters()]
    weights.to("cpu", "float64")
    assert all(p.dtype == paddle.float64 and np.array_equal(p.numpy(), w) for p, w in zip(model.parameters(), before))


def test_gradients_stay_slices_of_a_buffer_that_moves():
    model = two_layers()
    _, grads = fused(model)
    model(paddle.ones([1, 3])).sum().backward()
    before = [p.grad.numpy() for p in model.parameters()]
    grads.to("cpu", "float32")
    for p, value in zip(model.parameters(), before):
        assert np.array_equal(p.grad.numpy(), value) and p.grad._is_shared_buffer_with(grads.buffer)
    with pytest.raises(AssertionError, match="they must agree"):
        grads.to("cpu", "float64")


def test_parameters_stay_behind_if_asked():
    model = two_layers()
    weights, _ = fused(model)
    weights.to("cpu", "float64", keep_alignment=False)
    assert weights.buffer.dtype == paddle.float64 and model[0].weight.dtype == paddle.float32


def test_a_gradient_set_or_dropped_is_bound_no_more():
    p, buffer = paddle.create_parameter([2], "float32"), paddle.zeros([2])
    p._copy_gradient_from(buffer)
    p.grad = paddle.ones([2])
    (p * 3).sum().backward()
    assert p.grad.tolist() == [4, 4] and buffer.tolist() == [0, 0]
    p._copy_gradient_from(buffer)
    (p * 3).sum().backward()
    assert buffer.tolist() == [3, 3]


@pytest.mark.parametrize("make, said", [
    (lambda: paddle.zeros([4]), "as many elements"), (lambda: paddle.zeros([3, 2]).transpose([1, 0]), "contiguous"),
    (lambda: paddle.ones([6], "float32") * paddle.create_parameter([6], "float32"), "neither a result")])
def test_what_cannot_share(make, said):
    with pytest.raises(ValueError, match=said):
        make()._share_buffer_to(paddle.zeros([2, 3]))


def test_storages_refuse():
    model = two_layers()
    weights, grads = fused(model)
    with pytest.raises(AssertionError, match="was added before"):
        grads.add_grad(model[0].weight, 0)
    with pytest.raises(AssertionError, match="the buffer has"):
        grads.add_grad(paddle.create_parameter([2], "float32"), 0)
    with pytest.raises(AssertionError, match="they must agree"):
        ParamStorage(9, "float64", "cpu").add_rank_params([model[0].bias], {model[0].bias.name: 0})
    with pytest.raises(ValueError, match="contiguous tensor without history"):
        model[0].bias._copy_gradient_from(model[0].bias * 2)
    with pytest.raises(ValueError, match="must agree"):
        model[0].bias._copy_gradient_from(paddle.zeros([4]))
