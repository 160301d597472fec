"""Segmentation with a small U-Net: skip connections, up-sampling, dice loss, a mean-IoU of one's own."""
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.io import DataLoader, IterableDataset

from common import say, seeded


class Blobs(IterableDataset):
    """16 × 16 images of noise with a bright ellipse, and masks of it."""

    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __iter__(self):
        rng = np.random.RandomState(self.seed)
        y, x = np.mgrid[0:16, 0:16]
        for _ in range(self.n):
            cy, cx, ry, rx = rng.uniform(4, 12), rng.uniform(4, 12), rng.uniform(2, 5), rng.uniform(2, 5)
            mask = ((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 < 1
            image = rng.uniform(0, 0.6, [3, 16, 16]) + 0.5 * mask
            yield image.astype("float32"), mask.astype("int64")


class SeparableConv2D(nn.Layer):
    def __init__(self, cin, cout, stride=1, dilation=1):
        super().__init__()
        self.depth = nn.Conv2D(cin, cin, 3, stride, padding=dilation, dilation=dilation, groups=cin, bias_attr=False)
        self.point = nn.Conv2D(cin, cout, 1)

    def forward(self, x):
        return self.point(self.depth(x))


class UNet(nn.Layer):
    def __init__(self, classes=2):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU6())
        self.down1 = nn.Sequential(SeparableConv2D(8, 12, 2), nn.BatchNorm2D(12), nn.Hardswish())
        self.down2 = nn.Sequential(SeparableConv2D(12, 16, 2, dilation=2), nn.Silu())
        self.up1 = nn.Conv2DTranspose(16, 12, 3, stride=2, padding=1, output_padding=1)
        self.up2 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.merge = nn.Conv2D(24, 8, 3, padding=1, padding_mode="reflect")
        self.shuffle = nn.Sequential(nn.Conv2D(16, 16, 1), nn.PixelShuffle(2), nn.MaxPool2D(2))
        self.out = nn.Conv2D(4, classes, 1)

    def forward(self, x):
        a = self.stem(x)
        b = self.down1(a)
        c = self.down2(b)
        d = F.relu(self.merge(paddle.concat([self.up1(c), b], axis=1)))
        e = paddle.concat([self.up2(d), a], axis=1)
        low = F.interpolate(c, size=[16, 16], mode="nearest").mean(axis=1, keepdim=True)
        return self.out(self.shuffle(e) + low)


def dice(logits, mask):
    p = F.softmax(logits, axis=1)
    wanted = F.one_hot(mask, 2).transpose([0, 3, 1, 2])
    both = paddle.sum(p * wanted, axis=(2, 3))
    return 1 - ((2 * both + 1) / (p.sum([2, 3]) + wanted.sum([2, 3]) + 1)).mean()


def mean_iou(pred, mask):
    ious = []
    for k in range(2):
        a, b = pred == k, mask == k
        ious.append((a & b).astype("int64").sum() / paddle.maximum((a | b).astype("int64").sum(), paddle.to_tensor(1)))
    return paddle.stack(ious).mean()


def main():
    loader = DataLoader(Blobs(32, 1), batch_size=8, drop_last=True)
    net = seeded(UNet(), 10)
    opt = paddle.optimizer.Momentum(0.02, parameters=net.parameters())
    for epoch in range(4):
        for image, mask in loader:
            logits = net(image)
            loss = F.cross_entropy(logits, mask, axis=1, weight=paddle.to_tensor([1.0, 2.0])) + dice(logits, mask)
            loss += F.dice_loss(F.softmax(logits.transpose([0, 2, 3, 1])), mask.unsqueeze(-1))
            loss.backward()
            opt.step()
            opt.clear_grad()
        say(f"epoch {epoch}", loss, mean_iou(logits.argmax(1), mask))
    net.eval()
    for image, mask in DataLoader(Blobs(8, 2), batch_size=8):
        logits = net(image)
        say("test", F.cross_entropy(logits, mask, axis=1, ignore_index=0), mean_iou(paddle.argmax(logits, 1), mask))


if __name__ == "__main__":
    main()
