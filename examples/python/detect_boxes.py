"""A one-stage detector on drawn rectangles: a grid of cells, each with a score, a box and a class; NMS at the end."""
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

from common import say, seeded

SIDE, CELLS, CLASSES = 32, 4, 2
rng = np.random.RandomState(0)


def draw(n):
    """Images of one bright (class 0) or striped (class 1) rectangle each, and its box (x1, y1, x2, y2)."""
    x = rng.uniform(0, 0.2, [n, 1, SIDE, SIDE]).astype("float32")
    size, kind = rng.randint(8, 14, [n, 2]), rng.randint(0, CLASSES, n)
    at = np.stack([rng.randint(0, SIDE - s, n) for s in (13, 13)], 1)
    for image, (w, h), (left, top), k in zip(x, size, at, kind):
        patch = np.ones([h, w], "float32")
        patch[::2] = 1.0 if k == 0 else -1.0
        image[0, top:top + h, left:left + w] = patch
    return x, np.concatenate([at, at + size], 1).astype("float32"), kind.astype("int64")


def targets(boxes):
    """The cell of each box's center, and the box as offset in the cell and log of the size in cells."""
    cell = SIDE / CELLS
    center, size = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    index = np.minimum((center // cell).astype("int64"), CELLS - 1)
    return index[:, 1] * CELLS + index[:, 0], np.concatenate([center / cell - index, np.log(size / cell)], 1)


class Detector(nn.Layer):
    def __init__(self):
        super().__init__()
        def block(a, b):
            return nn.Sequential(nn.Conv2D(a, b, 3, stride=2, padding=1), nn.BatchNorm2D(b), nn.LeakyReLU(0.1))
        self.body = nn.Sequential(block(1, 16), block(16, 32), block(32, 32))
        self.head = nn.Conv2D(32, 1 + 4 + CLASSES, 1)

    def forward(self, x):
        out = self.head(self.body(x)).flatten(2).transpose([0, 2, 1])  # [N, cells, 7]
        return out[:, :, 0], out[:, :, 1:5], out[:, :, 5:]


def loss_of(net, x, boxes, kinds):
    score, box, kind = net(paddle.to_tensor(x))
    cell, wanted = targets(boxes)
    where = paddle.to_tensor(np.stack([np.arange(len(x)), cell], 1))
    there = F.one_hot(paddle.to_tensor(cell), CELLS * CELLS)
    return (F.binary_cross_entropy_with_logits(score, there)
            + F.smooth_l1_loss(paddle.gather_nd(box, where), paddle.to_tensor(wanted.astype("float32")))
            + F.cross_entropy(paddle.gather_nd(kind, where), paddle.to_tensor(kinds)))


def boxes_of(box):
    """Boxes in pixels of all cells of an image."""
    cell = SIDE / CELLS
    grid = paddle.to_tensor(np.stack(np.meshgrid(np.arange(CELLS), np.arange(CELLS)), -1).reshape(-1, 2).astype("float32"))
    center, size = (box[:, :2] + grid) * cell, paddle.exp(box[:, 2:]) * cell
    return paddle.concat([center - size / 2, center + size / 2], axis=1)


def overlap(a, b):
    size = np.clip(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0, None)
    inter = size[0] * size[1]
    return inter / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - inter)


def main():
    net = seeded(Detector())
    opt = paddle.optimizer.Momentum(paddle.optimizer.lr.CosineAnnealingDecay(0.05, 60), parameters=net.parameters())
    for step in range(60):
        loss = loss_of(net, *draw(16))
        loss.backward()
        opt.step()
        opt.clear_grad()
        opt._learning_rate.step()
        if step % 20 == 19:
            say("loss", loss)
    net.eval()
    x, boxes, kinds = draw(32)
    good = 0
    score, box, kind = net(paddle.to_tensor(x))
    for i in range(len(x)):
        found = boxes_of(box[i])
        kept = paddle.vision.ops.nms(found, 0.3, F.sigmoid(score[i]), top_k=1)
        best = int(kept[0])
        good += overlap(found[best].numpy(), boxes[i]) > 0.5 and int(kind[i, best].argmax()) == kinds[i]
    print("found", good > 20)


if __name__ == "__main__":
    main()
