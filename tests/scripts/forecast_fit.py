"""Forecasting a curve with Model.fit: logs as they are printed, accumulation, plateaus, best model, plain loss function."""
import numpy as np
import paddle
import paddle.nn as nn
from paddle.static import InputSpec

from common import say, seeded


class Windows(paddle.io.Dataset):
    def __init__(self, begin, end, size=8):
        t = np.arange(begin, end + size + 1)
        curve = (np.sin(t * 0.3) + 0.3 * np.cos(t * 0.11)).astype("float32")
        self.samples = [(curve[i:i + size, None], curve[i + size:i + size + 1]) for i in range(end - begin)]

    def __getitem__(self, i):
        return self.samples[i]

    def __len__(self):
        return len(self.samples)


class Forecaster(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1D(1, 6, 3, padding="same", data_format="NLC")
        self.gru = nn.GRU(6, 10)
        self.out = nn.Sequential(nn.Linear(10, 8), nn.SELU(), nn.Linear(8, 1))

    def forward(self, x):
        x = nn.functional.elu(self.conv(x))
        _, last = self.gru(x)
        return self.out(last[-1])


class MeanError(paddle.metric.Metric):
    def __init__(self):
        super().__init__()
        self.reset()

    def compute(self, pred, label, *args):
        return paddle.abs(pred - label).mean()

    def update(self, error):
        self.values.append(float(np.asarray(error)))
        return self.accumulate()

    def accumulate(self):
        return float(np.mean(self.values)) if self.values else 0.0

    def reset(self):
        self.values = []

    def name(self):
        return ["mean_error"]


class Order(paddle.callbacks.Callback):
    """The callback's calls in their order."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def note(self, name):
        if not self.seen or self.seen[-1] != name:
            self.seen.append(name)

    def on_train_begin(self, logs=None):
        self.note("train begin")

    def on_epoch_begin(self, epoch, logs=None):
        self.note(f"epoch {epoch}")

    def on_train_batch_begin(self, step, logs=None):
        self.note("batch")

    def on_eval_begin(self, logs=None):
        self.note(f"eval {sorted(logs)}" if logs else "eval")

    def on_eval_batch_end(self, step, logs=None):
        self.note("eval batch")

    def on_train_end(self, logs=None):
        self.note("train end")


def huber(pred, label):
    return nn.functional.smooth_l1_loss(pred, label, delta=0.5)


def main():
    train, test = Windows(0, 48), Windows(100, 124)
    net = seeded(Forecaster(), 19)
    model = paddle.Model(net, InputSpec([None, 8, 1], "float32", "x"), InputSpec([None, 1], "float32", "y"))
    optimizer = paddle.optimizer.Adam(0.02, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
    model.prepare(optimizer, huber, MeanError())
    order = Order()
    model.fit(train, test, batch_size=8, epochs=3, shuffle=False, verbose=2, log_freq=3, eval_freq=2,
              callbacks=[order, paddle.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=0, verbose=1,
                                                                   min_delta=1.0, cooldown=0)])
    print(order.seen)
    say("rate", optimizer.get_lr())
    model.prepare(paddle.optimizer.SGD(0.05, parameters=net.parameters()), huber, MeanError())
    model.fit(paddle.io.DataLoader(train, batch_size=12, shuffle=False), epochs=2, verbose=0, accumulate_grad_batches=2,
              num_iters=5)
    say("after accumulation", *(float(p.abs().sum()) for p in net.parameters()[:3]))
    result = model.evaluate(test, batch_size=12, verbose=2)
    print(sorted(result), [round(float(np.ravel(v)[0]), 4) for _, v in sorted(result.items())])
    for batch in model.predict(test, batch_size=16, verbose=0)[0]:
        say("predicted", batch.shape[0], batch.mean(), batch.std())
    print(model.mode if hasattr(model, "mode") else "train", len(model.parameters()), model.network is net)


if __name__ == "__main__":
    main()
