"""Cost of a network: paddle.summary and paddle.flops of several, with custom counts; parameters by dtype."""
import paddle
import paddle.nn as nn
from paddle.vision.models import LeNet, mobilenet_v1, mobilenet_v2, squeezenet1_1

from common import seeded


class TwoInputs(nn.Layer):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(4, 8), nn.Embedding(10, 8)
        self.lstm = nn.LSTM(8, 6)
        self.scale = self.create_parameter([6])

    def forward(self, x, ids):
        out, _ = self.lstm(self.left(x) + self.right(ids))
        return out * self.scale


class Doubled(nn.Layer):
    def forward(self, x):
        return x * 2


def count_doubled(layer, x, y):
    layer.total_ops += int(x[0].numel())


def main():
    lenet = LeNet()
    print(paddle.summary(lenet, (1, 1, 28, 28)))
    print(paddle.summary(lenet, paddle.static.InputSpec([None, 1, 28, 28], "float32", "image"), dtypes=["float32"]))
    print(paddle.summary(TwoInputs(), [(2, 5, 4), (2, 5)], dtypes=["float32", "int64"]))
    print(paddle.summary(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), input=paddle.ones([7, 3])))
    model = paddle.Model(seeded(nn.Sequential(nn.Flatten(), nn.Linear(16, 2)), 1))
    print(model.summary((1, 4, 4)))
    print(paddle.flops(lenet, [1, 1, 28, 28]))
    print(paddle.flops(mobilenet_v2(scale=0.25, num_classes=10), [1, 3, 32, 32]))
    net = nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.ReLU(), Doubled(), nn.AdaptiveAvgPool2D(2), nn.Flatten(),
                        nn.Linear(16, 5))
    print(paddle.flops(net, [2, 3, 16, 16], custom_ops={Doubled: count_doubled}, print_detail=True))
    print(sum(int(p.numel()) for p in mobilenet_v1(scale=0.5, num_classes=4).parameters()))
    net = squeezenet1_1(num_classes=3)
    print(type(net).__name__, len(net.state_dict()), sum(p.size for p in net.parameters() if not p.stop_gradient))
    print(nn.Linear(4, 4).to(dtype="float64").weight.dtype)


if __name__ == "__main__":
    main()
