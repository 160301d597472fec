"""Transfer learning, first half: trains a backbone on the digits 0-4 and saves layer and optimizer states."""
import paddle
import paddle.nn as nn

from common import digits, say, seeded


class Backbone(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2D(1, 8, 3, padding=1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(8, weight_attr=paddle.ParamAttr(name="bn_scale"))
        self.conv2 = nn.Conv2D(8, 12, 3, stride=2, padding=1)
        self.bn2 = nn.BatchNorm(12, act="relu")
        self.pool = nn.AdaptiveAvgPool2D(2)

    def forward(self, x):
        x = nn.functional.relu(self.bn1(self.conv1(x)))
        return paddle.flatten(self.pool(self.bn2(self.conv2(x))), 1)


class Classifier(nn.Layer):
    def __init__(self, classes):
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Linear(48, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def main():
    x, y = digits(400)
    keep = (y < 5)[:, 0]
    x, y = paddle.to_tensor(x[keep]), paddle.to_tensor(y[keep])
    net = seeded(Classifier(5), 12)
    opt = paddle.optimizer.Momentum(0.05, 0.9, parameters=net.parameters(), use_nesterov=True)
    for step in range(12):
        pick = paddle.arange(step * 16, step * 16 + 48) % x.shape[0]
        loss = nn.functional.cross_entropy(net(paddle.gather(x, pick)), paddle.index_select(y, pick, axis=0))
        loss.backward()
        opt.step()
        opt.clear_grad()
        if step % 4 == 3:
            say(f"step {step}", loss)
    paddle.save(net.state_dict(), "backbone.pdparams")
    paddle.save(opt.state_dict(), "backbone.pdopt")
    paddle.save({"classes": [0, 1, 2, 3, 4], "mean": x.mean(), "history": (loss.numpy(), "last")}, "backbone.meta")


if __name__ == "__main__":
    main()
