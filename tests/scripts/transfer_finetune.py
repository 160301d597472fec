"""Transfer learning, second half: loads what transfer_pretrain.py saved, freezes, trains a new head, then all."""
import paddle
import paddle.nn as nn

from common import digits, say, seeded
from transfer_pretrain import Classifier


def main():
    meta = paddle.load("backbone.meta")
    print("meta", meta["classes"], type(meta["mean"]).__name__, meta["history"][1])
    say("mean", meta["mean"], meta["history"][0])
    state = paddle.load("backbone.pdparams")
    print("state", [(k, list(v.shape)) for k, v in sorted(state.items())])
    optimizer_state = paddle.load("backbone.pdopt")
    print("optimizer", sorted(optimizer_state))
    say("velocity", *(abs(v.numpy()).sum() for k, v in sorted(optimizer_state.items()) if "velocity" in k))

    x, y = digits(300)
    x, y = paddle.to_tensor(x), paddle.to_tensor(y)
    net = seeded(Classifier(10), 13)
    state = {k: v for k, v in state.items() if not k.startswith("head.")}
    missing, unexpected = net.set_state_dict(dict(state, extra=paddle.zeros([1])))
    print("missing", missing, "unexpected", unexpected)
    for p in net.backbone.parameters():
        p.stop_gradient = True
    net.backbone.eval()
    head = [p for p in net.parameters() if not p.stop_gradient]
    print("trainable", [p.name.split(".")[-1] for p in head], [list(p.shape) for p in head])
    opt = paddle.optimizer.Adam(0.01, parameters=head)
    for step in range(8):
        loss = nn.functional.cross_entropy(net(x[step * 30:step * 30 + 60]), y[step * 30:step * 30 + 60])
        loss.backward()
        opt.step()
        opt.clear_grad()
    say("head only", loss, net.backbone.conv1.weight.sum())
    print("frozen", net.backbone.conv1.weight.grad is None)

    net.train()
    for p in net.backbone.parameters():
        p.stop_gradient = False
    opt = paddle.optimizer.Momentum(parameters=[
        {"params": net.backbone.parameters(), "learning_rate": 0.1},
        {"params": net.head.parameters(), "weight_decay": 0.01}], learning_rate=0.02, momentum=0.9)
    for step in range(8):
        loss = nn.functional.cross_entropy(net(x[step * 30:step * 30 + 60]), y[step * 30:step * 30 + 60])
        loss.backward()
        opt.step()
        opt.clear_grad()
        if step % 3 == 1:
            say(f"all {step}", loss)
    net.eval()
    say("accuracy", paddle.metric.accuracy(net(x), y), net.backbone.bn1._mean.sum(), net.backbone.bn2._variance.sum())


if __name__ == "__main__":
    main()
