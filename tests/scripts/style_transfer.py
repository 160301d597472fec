"""An image as the parameter: gram matrices of a fixed network, total variation, an optimizer over one tensor."""
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

from common import digits, say, seeded


class Features(nn.Layer):
    def __init__(self):
        super().__init__()
        self.layers = nn.LayerList([nn.Conv2D(1, 6, 3, padding=1), nn.Conv2D(6, 8, 3, padding=1), nn.Conv2D(8, 8, 3)])

    def forward(self, x):
        found = []
        for i, layer in enumerate(self.layers):
            x = F.celu(layer(x), alpha=0.5) if i < 2 else F.mish(layer(x))
            found.append(x)
            if i == 0:
                x = F.avg_pool2d(x, 2)
        return found


def gram(x):
    n, c, h, w = x.shape
    x = x.reshape([n, c, h * w])
    return paddle.bmm(x, x.transpose([0, 2, 1])) / (c * h * w)


def total_variation(x):
    return (x[:, :, 1:] - x[:, :, :-1]).abs().mean() + paddle.abs(x[..., 1:] - x[..., :-1]).mean()


def main():
    images, _ = digits(3)
    content, style = paddle.to_tensor(images[0:1]), paddle.to_tensor(images[1:2])
    net = seeded(Features(), 16, scale=1.0)
    for p in net.parameters():
        p.trainable = False
    with paddle.no_grad():
        content_features = net(content)
        style_grams = [gram(f) for f in net(style)]
    image = paddle.create_parameter(content.shape, dtype="float32",
                                    default_initializer=nn.initializer.Assign(images[0:1] * 0.5 + 0.25))
    scheduler = paddle.optimizer.lr.CosineAnnealingWarmRestarts(0.05, T_0=5) if hasattr(
        paddle.optimizer.lr, "CosineAnnealingWarmRestarts") else paddle.optimizer.lr.CosineAnnealingDecay(0.05, 5)
    optimizer = paddle.optimizer.Adam(scheduler, parameters=[image], epsilon=1e-4)
    for step in range(12):
        features = net(image)
        loss_c = F.l1_loss(features[1], content_features[1])
        loss_s = paddle.add_n([F.mse_loss(gram(f), g) for f, g in zip(features, style_grams)])
        loss = loss_c + 20.0 * loss_s + 0.05 * total_variation(image)
        loss.backward()
        if step == 0:
            say("gradient", image.grad.abs().mean(), image.grad.max())
        optimizer.step()
        optimizer.clear_grad()
        scheduler.step()
        with paddle.no_grad():
            paddle.assign(paddle.clip(image, 0.0, 1.0), image)
        if step % 3 == 2:
            say(f"step {step}", loss, loss_c, loss_s, optimizer.get_lr())
    say("image", image.mean(), image.std(), *image[0, 0, 3].tolist())

    x = paddle.to_tensor(images[2], stop_gradient=False)
    big = F.interpolate(x.unsqueeze(0), scale_factor=2, mode="bicubic", align_corners=True)
    theta = paddle.to_tensor([[[0.9, -0.2, 0.1], [0.2, 0.9, 0.0]]])
    turned = F.grid_sample(big, F.affine_grid(theta, [1, 1, 12, 12], align_corners=False), padding_mode="border")
    patches = F.unfold(turned, kernel_sizes=[3, 3], strides=3)
    patches.square().sum().backward()
    say("warped", turned.sum(), patches.max(), x.grad.sum())


if __name__ == "__main__":
    main()
