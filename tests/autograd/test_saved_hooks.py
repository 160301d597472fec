"""saved_tensors_hooks: what the tape keeps in place of saved tensors, when it is unpacked and released, and its errors."""
import gc
import weakref

import numpy as np
import pytest

import proa as paddle


class Kept:
    """An array that a pack hook returns, and that can be watched."""

    def __init__(self, t):
        self.value = t.numpy()


def unpack(kept):
    return paddle.to_tensor(kept.value)


def net_and_input():
    paddle.seed(1)
    net = paddle.nn.Sequential(paddle.nn.Conv2D(2, 3, 3), paddle.nn.BatchNorm2D(3), paddle.nn.GELU(), paddle.nn.Flatten(),
                               paddle.nn.Linear(12, 4), paddle.nn.LayerNorm(4), paddle.nn.Softmax())
    return net, paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 2, 4, 4)).astype("float32"))


def gradients(hooked):
    net, x = net_and_input()
    target = paddle.to_tensor(np.random.default_rng(1).normal(size=(2, 4)).astype("float32"))
    if hooked:
        with paddle.autograd.saved_tensors_hooks(Kept, unpack):
            loss = ((net(x) - target) ** 2).sum()
    else:
        loss = ((net(x) - target) ** 2).sum()
    loss.backward()
    return [p.grad.numpy() for p in net.parameters() if p.trainable]


def test_gradients_are_those_without_hooks():
    for hooked, plain in zip(gradients(True), gradients(False)):
        np.testing.assert_array_equal(hooked, plain)


def test_what_was_packed_goes_with_the_graph():
    seen = []

    def pack(t):
        seen.append(weakref.ref(kept := Kept(t)))
        return kept
    x = paddle.ones([2], dtype="float32")
    x.stop_gradient = False
    with paddle.autograd.saved_tensors_hooks(pack, unpack):
        y = paddle.sin(x)
        z = paddle.sin(x)
    assert len(seen) == 2 and all(one() is not None for one in seen)
    y.backward()
    del z
    gc.collect()
    assert all(one() is None for one in seen)


def test_retained_graphs_unpack_twice():
    x = paddle.to_tensor([2.0, 3.0], stop_gradient=False)
    with paddle.autograd.saved_tensors_hooks(Kept, unpack):
        y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0, 12.0]


def test_a_value_that_is_overwritten_is_packed_before():
    x = paddle.to_tensor([2.0], stop_gradient=False)
    with paddle.autograd.saved_tensors_hooks(Kept, unpack):
        y = x * 1.0
        z = y * y
        y.add_(paddle.to_tensor([1.0]))
    z.backward()
    assert x.grad.tolist() == [4.0]


def test_errors():
    x = paddle.to_tensor([2.0], stop_gradient=False)

    def fails(_):
        raise KeyError("mine")
    with paddle.autograd.saved_tensors_hooks(fails, unpack), pytest.raises(KeyError, match="mine"):
        paddle.sin(x)
    with paddle.autograd.saved_tensors_hooks(Kept, fails):
        y = paddle.sin(x)
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    for made, kind, text in ((None, TypeError, "must return a Tensor"), (paddle.ones([3]), ValueError, "same shape and dtype")):
        with paddle.autograd.saved_tensors_hooks(Kept, lambda _, made=made: made):
            y = paddle.sin(x)
        with pytest.raises(kind, match=text):
            y.backward()
    with paddle.autograd.saved_tensors_hooks(Kept, unpack):
        y = paddle.sin(x)
    with pytest.raises(NotImplementedError, match="without create_graph"):
        paddle.grad(y, x, create_graph=True)
    assert paddle.grad(paddle.sin(x), x)[0].shape == [1]


def test_parameters_of_lazy_guard():
    with paddle.LazyGuard():
        net = paddle.nn.Linear(2, 3)
    with pytest.raises(NotImplementedError):
        net(paddle.ones([1, 2]))
    assert "not initialized" in repr(net.weight) and net.weight.shape == [2, 3] and not net.weight.stop_gradient
    net.bias.set_value(paddle.ones([3]))
    net.weight.initialize()
    assert type(net.weight) is type(paddle.nn.Linear(1, 1).weight)
    net(paddle.ones([1, 2])).sum().backward()
    assert net.weight.grad.shape == [2, 3] and net.bias.tolist() == [1.0] * 3
    with pytest.raises(AssertionError):
        net.weight.initialize()
