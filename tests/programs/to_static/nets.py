"""Networks and their training, for the tests of to_static."""
import numpy as np

import proa as paddle

nn = paddle.nn


def tensor(*shape, seed=0, dtype="float32"):
    return paddle.to_tensor(np.random.RandomState(seed).standard_normal(shape).astype(dtype))


class Net(nn.Layer):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.fc = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1D(8)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(8, 2)
        self.register_buffer("calls", paddle.zeros([1]))

    def forward(self, x, scale=1.0):
        y = self.bn(self.fc(x))
        if y.mean() > 0:
            y = y * scale
        else:
            y = -y
        self.calls = self.calls + 1
        return self.out(self.drop(nn.functional.relu(y)))


class Decorated(Net):
    @paddle.jit.to_static
    def forward(self, x, scale=1.0):
        return super().forward(x, scale)


def make(kind=Net, **options):
    paddle.seed(5)
    return kind(**options)


def train(net, steps=5, dims=(6, 4)):
    optimizer = paddle.optimizer.AdamW(learning_rate=0.05, parameters=net.parameters())
    losses = []
    for i in range(steps):
        loss = nn.functional.mse_loss(net(tensor(*dims, seed=i)), tensor(dims[0], 2, seed=100 + i))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses


def state(net):
    return {name: value.numpy() for name, value in net.state_dict().items()}


def same_state(one, other):
    a, b = state(one), state(other)
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)
