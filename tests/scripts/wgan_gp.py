"""WGAN-GP on rings of points: the gradient of a gradient's norm, paddle.grad with create_graph."""
import numpy as np
import paddle
import paddle.nn as nn

from common import say, seeded


class MLP(nn.Layer):
    def __init__(self, sizes, last=None):
        super().__init__()
        layers = []
        for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
            layers.append(nn.Linear(a, b))
            if i < len(sizes) - 2:
                layers.append(nn.Softplus() if i % 2 else nn.Tanh())
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


def gradient_penalty(critic, real, fake, alpha, weight=10.0):
    mixed = alpha * real + (1 - alpha) * fake
    mixed.stop_gradient = False
    score = critic(mixed)
    gradient = paddle.grad(outputs=score, inputs=mixed, grad_outputs=paddle.ones_like(score), create_graph=True,
                           retain_graph=True, only_inputs=True)[0]
    norm = paddle.sqrt(paddle.sum(paddle.square(gradient), axis=1) + 1e-12)
    return weight * paddle.mean((norm - 1) ** 2)


def main():
    rng = np.random.RandomState(9)
    critic, generator = seeded(MLP([2, 24, 24, 1]), 1, 1.0), seeded(MLP([3, 24, 2]), 2, 1.0)
    opt_c = paddle.optimizer.Adam(2e-3, beta1=0.0, beta2=0.9, epsilon=1e-3, parameters=critic.parameters())
    opt_g = paddle.optimizer.Adam(2e-3, beta1=0.0, beta2=0.9, epsilon=1e-3, parameters=generator.parameters())
    for step in range(8):
        for _ in range(3):
            angle = rng.uniform(0, 2 * np.pi, 32)
            real = paddle.to_tensor(np.stack([np.cos(angle), np.sin(angle)], 1).astype("float32"))
            fake = generator(paddle.to_tensor(rng.randn(32, 3).astype("float32"))).detach()
            alpha = paddle.to_tensor(rng.rand(32, 1).astype("float32"))
            penalty = gradient_penalty(critic, real, fake, alpha)
            loss_c = critic(fake).mean() - critic(real).mean() + penalty
            opt_c.clear_grad()
            loss_c.backward()
            opt_c.step()
        for p in critic.parameters():
            p.stop_gradient = True
        loss_g = -critic(generator(paddle.to_tensor(rng.randn(32, 3).astype("float32")))).mean()
        opt_g.clear_grad()
        loss_g.backward()
        opt_g.step()
        for p in critic.parameters():
            p.stop_gradient = False
        say(f"step {step}", loss_c, penalty, loss_g)

    x = paddle.to_tensor([0.5, -1.5, 2.0], stop_gradient=False)
    y = (x ** 3).sum()
    first, = paddle.grad(y, x, create_graph=True)
    second, = paddle.grad(first.sum(), x, create_graph=True)
    third, = paddle.grad(second.sum(), x)
    say("derivatives", *first.numpy(), *second.numpy(), *third.numpy())
    w = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
    unused = paddle.to_tensor([1.0], stop_gradient=False)
    a, b = paddle.grad([(w * w).sum()], [w, unused], allow_unused=True)
    print("unused", b is None, a.tolist())


if __name__ == "__main__":
    main()
