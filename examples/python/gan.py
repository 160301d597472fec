"""A DCGAN on digits: transposed convolutions, batch norm, two optimizers, detach."""
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

from common import digits, say, seeded


class Generator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.gen = nn.Sequential(
            nn.Conv2DTranspose(8, 16, 2, 1, 0, bias_attr=False),
            nn.BatchNorm2D(16),
            nn.ReLU(True),
            nn.Conv2DTranspose(16, 8, 4, 2, 1, bias_attr=False),
            nn.BatchNorm2D(num_features=8, momentum=0.8),
            nn.ReLU(),
            nn.Conv2DTranspose(in_channels=8, out_channels=1, kernel_size=4, stride=2, padding=1),
            nn.Tanh())

    def forward(self, x):
        return self.gen(x)


class Discriminator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dis = nn.Sequential(
            nn.Conv2D(1, 8, 4, 2, 1, bias_attr=False),
            nn.LeakyReLU(0.2),
            nn.Conv2D(8, 16, 4, 2, 1, bias_attr=False),
            nn.BatchNorm2D(16),
            nn.LeakyReLU(negative_slope=0.2))
        self.last = nn.Conv2D(16, 1, 2, 1, 0)

    def forward(self, x):
        return F.sigmoid(self.last(self.dis(x)))


def main():
    images, _ = digits(128)
    images = images * 2 - 1
    noise = np.random.RandomState(4)
    netG, netD = seeded(Generator(), 1), seeded(Discriminator(), 2)
    loss = nn.BCELoss()
    optimizerD = paddle.optimizer.Adam(parameters=netD.parameters(), learning_rate=0.002, beta1=0.5, beta2=0.999)
    optimizerG = paddle.optimizer.Adam(parameters=netG.parameters(), learning_rate=0.002, beta1=0.5, beta2=0.999)
    real_label, fake_label = paddle.ones([32, 1, 1, 1]), paddle.zeros([32, 1, 1, 1])
    for step in range(8):
        real = paddle.to_tensor(images[step % 4 * 32:][:32])
        z = paddle.to_tensor(noise.randn(32, 8, 1, 1), dtype="float32")

        optimizerD.clear_grad()
        errD_real = loss(netD(real), real_label)
        errD_real.backward()
        fake = netG(z)
        errD_fake = loss(netD(fake.detach()), fake_label)
        errD_fake.backward()
        optimizerD.step()

        optimizerG.clear_grad()
        output = netD(fake)
        errG = loss(output, real_label)
        errG.backward()
        optimizerG.step()
        say(f"step {step}", errD_real + errD_fake, errG, output.mean(), fake.std())
    netG.eval()
    made = netG(paddle.to_tensor(noise.randn(4, 8, 1, 1).astype("float32")))
    say("made", made.mean(), made.max(), made.min())
    say("running", netG.gen[1]._mean.mean(), netG.gen[1]._variance.mean())


if __name__ == "__main__":
    main()
