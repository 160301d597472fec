"""Writes between forward and backward: as in Paddle, backward accepts an optimizer's step, set_value and their kin, and
reads the new values; an op that writes in place spoils what was saved."""
import numpy as np
import proa as paddle
import pytest

W = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
NEW = np.array([[5.0, -1.0], [0.5, 2.0]], "float32")


class Product(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([2, 2], default_initializer=paddle.nn.initializer.Assign(W))

    def forward(self, x):
        return paddle.matmul(x, self.weight)


def step(kind, **more):
    def write(layer):
        layer.weight.grad = paddle.ones([2, 2])
        kind(learning_rate=0.5, parameters=layer.parameters(), **more).step()
    return write


ACCEPTED = {"set_value": lambda layer: layer.weight.set_value(NEW),
            "set_value of a view": lambda layer: layer.weight.set_value(paddle.to_tensor(NEW.T).t()),
            "set_state_dict": lambda layer: layer.set_state_dict({"weight": paddle.to_tensor(NEW)}),
            "copy_": lambda layer: layer.weight.copy_(paddle.to_tensor(NEW), True),
            "initializer": lambda layer: paddle.nn.initializer.Assign(NEW)(layer.weight),
            "get_tensor": lambda layer: layer.weight.value().get_tensor().set(NEW, paddle.CPUPlace()),
            "SGD": step(paddle.optimizer.SGD), "Momentum": step(paddle.optimizer.Momentum),
            "Adam": step(paddle.optimizer.Adam), "AdamW": step(paddle.optimizer.AdamW), "Lamb": step(paddle.optimizer.Lamb)}
REFUSED = {"add_": lambda layer: layer.weight.add_(paddle.ones([2, 2])),
           "setitem": lambda layer: layer.weight.__setitem__(0, 1.0),
           "zero_": lambda layer: layer.weight.zero_(),
           "assign": lambda layer: paddle.assign(paddle.to_tensor(NEW), layer.weight)}


def called(compiled):
    layer = Product()
    x = paddle.to_tensor([[1.0, -2.0]], stop_gradient=False)
    forward = paddle.jit.to_static(layer.forward, full_graph=True) if compiled else layer.forward
    return layer, x, (forward(x) ** 2).sum()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("write", ACCEPTED)
def test_backward_reads_the_new_values(write, compiled):
    layer, x, loss = called(compiled)
    version = layer.weight.inplace_version
    ACCEPTED[write](layer)
    assert layer.weight.inplace_version == version
    assert not np.array_equal(layer.weight.numpy(), W)
    loss.backward()
    expected = 2 * (np.array([[1.0, -2.0]], "float32") @ W) @ layer.weight.numpy().T
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("write", REFUSED)
def test_ops_in_place_spoil_what_was_saved(write):
    layer, x, loss = called(compiled=False)
    with paddle.no_grad():
        REFUSED[write](layer)
    with pytest.raises(RuntimeError, match="received tensor_version:1 != wrapper_version_snapshot:0"):
        loss.backward()


def test_both_networks_of_a_game_may_step_before_the_second_backward():
    """The order of many GAN scripts: the critic steps while the generator's loss still needs its weights."""
    critic, maker = Product(), Product()
    optimizer = paddle.optimizer.SGD(0.1, parameters=critic.parameters())
    made = maker(paddle.to_tensor([[1.0, -2.0]]))
    loss_of_maker = critic(made).sum()
    critic(made.detach()).square().sum().backward()
    optimizer.step()
    loss_of_maker.backward()
    slope = np.ones((1, 2), "float32") @ critic.weight.numpy().T
    np.testing.assert_allclose(maker.weight.grad.numpy(), np.array([[1.0], [-2.0]], "float32") @ slope, rtol=1e-5)
