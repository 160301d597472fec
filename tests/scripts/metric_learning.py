"""Metric learning: a siamese network with contrastive loss, a triplet loss with hard mining, nearest neighbors."""
import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

from common import digits, say, seeded


class Embedder(nn.Layer):
    def __init__(self, size=8):
        super().__init__()
        self.convs = nn.LayerList([nn.Conv2D(1, 8, 3, padding="SAME"), nn.Conv2D(8, 12, 3, stride=2, padding=1)])
        self.norms = nn.LayerList([nn.GroupNorm(num_groups=4, num_channels=8), nn.InstanceNorm2D(12)])
        self.pool = nn.AdaptiveMaxPool2D((2, 2))
        self.fc = nn.Linear(48, size)

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.leaky_relu(norm(conv(x)), negative_slope=0.1)
        return F.normalize(self.fc(self.pool(x).flatten(1)), p=2, axis=1)


def contrastive(a, b, same, margin=1.0):
    distance = nn.PairwiseDistance(p=2)(a, b)
    return paddle.mean(same * distance ** 2 + (1 - same) * F.relu(margin - distance) ** 2)


def hard_triplets(embeddings, labels, margin=0.3):
    """The farthest of the same class and the nearest of another, for each row."""
    square = paddle.sum(embeddings * embeddings, axis=1, keepdim=True)
    distances = paddle.clip(square + square.t() - 2 * embeddings.matmul(embeddings, transpose_y=True), min=1e-12).sqrt()
    same = paddle.equal(labels.unsqueeze(1), labels.unsqueeze(0))
    far = paddle.max(paddle.where(same, distances, paddle.zeros_like(distances)), axis=1)
    near = paddle.min(paddle.where(paddle.logical_not(same), distances, paddle.full_like(distances, 1e3)), axis=1)
    return F.margin_ranking_loss(near, far, paddle.ones_like(near), margin=margin)


def main():
    images, labels = digits(300)
    images, labels = paddle.to_tensor(images), paddle.to_tensor(labels[:, 0])
    rng = np.random.RandomState(6)
    net = seeded(Embedder(), 4)
    opt = paddle.optimizer.Adam(parameters=net.parameters(), learning_rate=3e-3)
    for step in range(6):
        i, j = rng.randint(0, 200, 40), rng.randint(0, 200, 40)
        a, b = net(images[i]), net(paddle.gather(images, paddle.to_tensor(j)))
        same = (labels[paddle.to_tensor(i)] == labels[paddle.to_tensor(j)]).astype("float32")
        loss = contrastive(a, b, same)
        loss.backward()
        opt.step()
        opt.clear_grad()
        say(f"contrastive {step}", loss)
    for step in range(6):
        pick = rng.permutation(200)[:50]
        loss = hard_triplets(net(images[pick]), labels[pick])
        anchors = net(images[pick[:10]])
        extra = F.triplet_margin_loss(anchors, net(images[pick[10:20]]), net(images[pick[20:30]]), margin=0.5)
        cosine = F.cosine_embedding_loss(anchors, net(images[pick[10:20]]), paddle.to_tensor([1, -1] * 5))
        (loss + 0.1 * extra + 0.1 * cosine).backward()
        opt.step()
        opt.clear_grad()
        say(f"triplet {step}", loss, extra, cosine)
    net.eval()
    with paddle.no_grad():
        known, asked = net(images[:200]), net(images[200:])
        similarity = paddle.mm(asked, paddle.transpose(known, [1, 0]))
        top = paddle.topk(similarity, k=5, axis=1)[1]
        votes = F.one_hot(labels[top.flatten()], 10).reshape([100, 5, 10]).sum(1)
        say("nearest", (votes.argmax(1) == labels[200:]).astype("float32").mean(), similarity.max(), similarity.std())


if __name__ == "__main__":
    main()
