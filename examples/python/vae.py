"""A variational autoencoder on digits: reparametrisation, KL divergence, several losses, a learned prior scale."""
import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

from common import digits, say, seeded


class VAE(nn.Layer):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ELU(), nn.Linear(32, 24), nn.Softplus())
        self.mu, self.log_var = nn.Linear(24, latent), nn.Linear(24, latent)
        self.decoder = nn.Sequential(("fc1", nn.Linear(latent, 32)), ("act", nn.Swish()), ("fc2", nn.Linear(32, 64)))
        self.log_scale = self.create_parameter([1], default_initializer=nn.initializer.Constant(0.0))

    def encode(self, x):
        h = self.encoder(x)
        return self.mu(h), paddle.clip(self.log_var(h), min=-5.0, max=5.0)

    def forward(self, x, eps):
        mu, log_var = self.encode(x)
        z = mu + paddle.exp(0.5 * log_var) * eps
        return F.sigmoid(self.decoder(z)).reshape([-1, 1, 8, 8]), mu, log_var, z


def losses(model, x, out):
    made, mu, log_var, z = out
    bce = F.binary_cross_entropy(made, x, reduction="sum") / x.shape[0]
    kl = -0.5 * paddle.mean(paddle.sum(1 + log_var - mu.square() - log_var.exp(), axis=1))
    prior = F.mse_loss(z * paddle.exp(model.log_scale), paddle.zeros_like(z)) + F.smooth_l1_loss(made, x)
    return bce, kl, prior


def main():
    images, labels = digits(200)
    rng = np.random.RandomState(8)
    model = seeded(VAE(), 5)
    scheduler = paddle.optimizer.lr.ExponentialDecay(learning_rate=0.01, gamma=0.95)
    optimizer = paddle.optimizer.Adamax(learning_rate=scheduler, parameters=model.parameters())
    for epoch in range(4):
        order = rng.permutation(len(images))
        for begin in range(0, len(images), 50):
            x = paddle.to_tensor(images[order[begin:begin + 50]])
            eps = paddle.to_tensor(rng.standard_normal([50, 4]).astype("float32"))
            bce, kl, prior = losses(model, x, model(x, eps))
            total = paddle.add_n([bce, kl * 0.5, prior])
            optimizer.clear_grad()
            total.backward()
            optimizer.minimize(total)
        scheduler.step()
        say(f"epoch {epoch}", bce, kl, prior, optimizer.get_lr())
    with paddle.no_grad():
        mu, log_var = model.encode(paddle.to_tensor(images[:4]))
        say("codes", *mu.numpy().flatten())
        centres = paddle.stack([model.encode(paddle.to_tensor(images[labels[:, 0] == k]))[0].mean(0) for k in range(3)])
        distance = paddle.linalg.norm(centres.unsqueeze(0) - centres.unsqueeze(1), p=2, axis=-1)
        say("distances", *distance.flatten().tolist())
        grid = paddle.stack(paddle.meshgrid(paddle.linspace(-1, 1, 3), paddle.linspace(-1, 1, 3)), -1).reshape([9, 2])
        z = paddle.concat([grid, paddle.zeros([9, 2])], axis=1)
        say("grid", *F.sigmoid(model.decoder(z)).mean(axis=1).tolist())


if __name__ == "__main__":
    main()
