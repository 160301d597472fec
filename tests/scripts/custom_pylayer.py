"""Functions with gradients of one's own: PyLayer with context, several tensors, straight-through, and in a network."""
import numpy as np
import paddle
import paddle.nn as nn
from paddle.autograd import PyLayer

from common import say, seeded


class cus_tanh(PyLayer):
    @staticmethod
    def forward(ctx, x, func1, func2=paddle.square):
        ctx.func = func2
        y = func1(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensor()
        return dy * (1 - ctx.func(y))


class Bilinear(PyLayer):
    @staticmethod
    def forward(ctx, x, y, scale):
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * y * scale, x + y

    @staticmethod
    def backward(ctx, d_product, d_sum):
        x, y = ctx.saved_tensor()
        return d_product * y * ctx.scale + d_sum, d_product * x * ctx.scale + d_sum


class Binarize(PyLayer):
    """sign(x) forward, and the gradient passes where |x| ≤ 1."""

    @staticmethod
    def forward(ctx, x):
        ctx.mask = x.abs() <= 1
        return paddle.sign(x)

    @staticmethod
    def backward(ctx, dy):
        return paddle.where(ctx.mask, dy, paddle.zeros_like(dy))


class ReverseGradient(PyLayer):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x.clone()

    @staticmethod
    def backward(ctx, dy):
        return -ctx.weight * dy


class BinaryLinear(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(x, Binarize.apply(self.weight), self.bias)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(BinaryLinear(6, 16), nn.Hardtanh(), nn.Linear(16, 8))
        self.label, self.domain = nn.Linear(8, 3), nn.Linear(8, 2)

    def forward(self, x, weight):
        h = cus_tanh.apply(self.body(x), paddle.tanh)
        return self.label(h), self.domain(ReverseGradient.apply(h, weight))


def main():
    rng = np.random.RandomState(3)
    data = paddle.to_tensor(rng.uniform(-1, 1, [2, 3]).astype("float64"), stop_gradient=False)
    z = cus_tanh.apply(data, paddle.tanh, func2=paddle.square)
    z.mean().backward()
    say("tanh", z.sum(), *data.grad.numpy().flatten())
    a, b = (paddle.to_tensor(rng.rand(4).astype("float32"), stop_gradient=False) for _ in range(2))
    p, s = Bilinear.apply(a, b, 3.0)
    (p * 2 + s).sum().backward()
    say("bilinear", *a.grad.numpy(), *b.grad.numpy())

    x = rng.standard_normal([60, 6]).astype("float32")
    label = (x[:, 0] > 0).astype("int64") + (x[:, 1] > 0)
    domain = (x[:, 2] > 0.5).astype("int64")
    net = seeded(Net(), 7)
    opt = paddle.optimizer.SGD(learning_rate=paddle.optimizer.lr.StepDecay(0.2, step_size=4, gamma=0.5),
                               parameters=net.parameters())
    for step in range(10):
        out, adversary = net(paddle.to_tensor(x), 0.1 * step)
        loss1 = nn.functional.cross_entropy(out, paddle.to_tensor(label))
        loss2 = nn.functional.softmax_with_cross_entropy(adversary, paddle.to_tensor(domain[:, None])).mean()
        (loss1 + loss2).backward()
        opt.step()
        opt.clear_grad()
        opt._learning_rate.step()
        if step % 3 == 0:
            say(f"step {step}", loss1, loss2)


if __name__ == "__main__":
    main()
