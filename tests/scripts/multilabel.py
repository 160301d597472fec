"""Multi-label classification: a metric of one's own in Model.fit, weighted losses, precision, recall and AUC."""
import numpy as np
import paddle
import paddle.nn as nn

from common import say, seeded


class F1Score(paddle.metric.Metric):
    def __init__(self, name="f1", threshold=0.5):
        super().__init__()
        self._name, self.threshold = name, threshold
        self.reset()

    def compute(self, pred, label):
        return (nn.functional.sigmoid(pred) > self.threshold).astype("float32"), label

    def update(self, pred, label):
        pred, label = np.asarray(pred), np.asarray(label)
        self.tp += (pred * label).sum()
        self.fp += (pred * (1 - label)).sum()
        self.fn += ((1 - pred) * label).sum()
        return self.accumulate()

    def accumulate(self):
        return float(2 * self.tp / max(2 * self.tp + self.fp + self.fn, 1))

    def reset(self):
        self.tp = self.fp = self.fn = 0.0

    def name(self):
        return self._name


class FocalLoss(nn.Layer):
    def __init__(self, weights):
        super().__init__()
        self.bce = nn.BCEWithLogitsLoss(weight=paddle.to_tensor(weights), reduction="none")

    def forward(self, logits, labels):
        p = nn.functional.sigmoid(logits)
        pt = paddle.where(labels > 0.5, p, 1 - p)
        return ((1 - pt) ** 2 * self.bce(logits, labels)).mean()


class Print(paddle.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        say(f"epoch {epoch}", logs["loss"], logs["f1"])

    def on_eval_end(self, logs=None):
        say("eval", logs["loss"], logs["f1"])


def main():
    rng = np.random.RandomState(1)
    x = rng.standard_normal([160, 10]).astype("float32")
    w = rng.standard_normal([10, 4])
    y = (x @ w + 0.3 > 0).astype("float32")
    train = paddle.io.TensorDataset([paddle.to_tensor(x[:120]), paddle.to_tensor(y[:120])])
    test = paddle.io.TensorDataset([paddle.to_tensor(x[120:]), paddle.to_tensor(y[120:])])
    net = nn.Sequential(nn.Linear(10, 24), nn.BatchNorm1D(24), nn.PReLU(24), nn.Linear(24, 4))
    model = paddle.Model(seeded(net, 8))
    model.prepare(paddle.optimizer.AdamW(0.02, epsilon=1e-3, parameters=net.parameters(), weight_decay=0.05),
                  FocalLoss([1.0, 2.0, 1.5, 1.0]), metrics=[F1Score()])
    model.fit(train, eval_data=test, epochs=4, batch_size=40, shuffle=False, verbose=0, callbacks=Print(), eval_freq=2)
    out = model.predict(test, batch_size=40, verbose=0, stack_outputs=True)[0]
    print("parameters", model.parameters()[0].shape, len(model.parameters()))

    precision, recall, auc = paddle.metric.Precision(), paddle.metric.Recall(), paddle.metric.Auc()
    p = 1 / (1 + np.exp(-out))
    precision.update(p[:, 0], y[120:, 0].astype("int32"))
    recall.update(p[:, 0], y[120:, 0].astype("int32"))
    auc.update(preds=np.stack([1 - p[:, 1], p[:, 1]], 1), labels=y[120:, 1:2])
    say("metrics", precision.accumulate(), recall.accumulate(), auc.accumulate())
    soft = nn.functional.multi_label_soft_margin_loss if hasattr(nn.functional, "multi_label_soft_margin_loss") else None
    labels = paddle.to_tensor(y[120:])
    logits = paddle.to_tensor(out, stop_gradient=False)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, labels, weight=paddle.to_tensor([1.0, 0.5, 0.5, 1.0]))
    loss = loss + soft(logits, labels) + nn.functional.sigmoid_focal_loss(logits, labels, reduction="mean")
    loss.backward()
    say("losses", loss, logits.grad.abs().sum())


if __name__ == "__main__":
    main()
