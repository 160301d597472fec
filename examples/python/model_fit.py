"""Handwritten digits with the high-level API: Model.fit, callbacks, evaluate, predict, save and load."""
import os

import numpy as np
import paddle
import paddle.nn as nn
from paddle.metric import Accuracy
from paddle.vision.transforms import Compose, Normalize, Resize

from common import digits, say, seeded


class Digits(paddle.io.Dataset):
    def __init__(self, mode="train", transform=None):
        super().__init__()
        x, y = digits(480)
        cut = 360
        self.x, self.y = (x[:cut], y[:cut]) if mode == "train" else (x[cut:], y[cut:])
        self.transform = transform

    def __getitem__(self, index):
        image = self.x[index]
        if self.transform is not None:
            image = self.transform(image.transpose(1, 2, 0)).astype("float32")
        return image, self.y[index]

    def __len__(self):
        return len(self.x)


class Net(nn.Layer):
    def __init__(self, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(1, 6, 3, stride=1, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(6, 16, 3, padding=1), nn.BatchNorm2D(16), nn.ReLU(), nn.AvgPool2D(kernel_size=2, stride=2))
        self.fc = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, num_classes))

    def forward(self, inputs):
        x = self.features(inputs)
        x = paddle.flatten(x, start_axis=1, stop_axis=-1)
        return self.fc(x)


class Losses(paddle.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.losses = []

    def on_train_batch_end(self, step, logs=None):
        self.losses.append(float(np.array(logs["loss"]).ravel()[0]))

    def on_epoch_end(self, epoch, logs=None):
        say(f"epoch {epoch}", np.mean(self.losses[-6:]), logs["acc_top1"] if "acc_top1" in logs else logs["acc"])


def main():
    np.random.seed(7)
    transform = Compose([Resize(8), Normalize(mean=[0.3], std=[0.35], data_format="HWC"),
                         lambda image: np.transpose(image.reshape(8, 8, 1), (2, 0, 1))])
    train, test = Digits("train", transform), Digits("test", transform)

    net = seeded(Net(), 1)
    model = paddle.Model(net, inputs=[paddle.static.InputSpec([None, 1, 8, 8], "float32", "image")],
                         labels=[paddle.static.InputSpec([None, 1], "int64", "label")])
    scheduler = paddle.optimizer.lr.MultiStepDecay(learning_rate=0.02, milestones=[12, 20], gamma=0.5)
    optim = paddle.optimizer.Momentum(learning_rate=scheduler, momentum=0.9, parameters=model.parameters(),
                                      weight_decay=paddle.regularizer.L2Decay(1e-4))
    model.prepare(optim, nn.CrossEntropyLoss(), Accuracy(topk=(1, 2)))
    stop = paddle.callbacks.EarlyStopping("acc_top1", mode="max", patience=1, verbose=0, min_delta=0.2,
                                          baseline=None, save_best_model=True)
    log = Losses()
    model.fit(train, test, epochs=5, batch_size=60, shuffle=True, verbose=0, save_dir="model_fit_out", save_freq=2,
              callbacks=[log, stop, paddle.callbacks.LRScheduler(by_step=True, by_epoch=False)])
    say("rate", optim.get_lr())
    print("saved", sorted(os.listdir("model_fit_out")))

    result = model.evaluate(test, batch_size=50, verbose=0)
    say("evaluate", result["loss"][0], result["acc_top1"], result["acc_top2"])
    outputs = model.predict(test, batch_size=32, stack_outputs=True, verbose=0)
    print("predict", len(outputs), outputs[0].shape, outputs[0].argmax(-1)[:20])

    model.save("model_fit_out/last")
    other = paddle.Model(Net())
    other.prepare(paddle.optimizer.Adam(parameters=other.parameters()), nn.CrossEntropyLoss(), Accuracy())
    other.load("model_fit_out/last", reset_optimizer=True)
    say("loaded", *other.predict_batch([test[0][0][None]])[0][0])
    loss, metrics = other.train_batch([np.stack([train[i][0] for i in range(8)])],
                                      [np.stack([train[i][1] for i in range(8)])])
    say("one batch", loss[0], metrics)
    loss, metrics = other.eval_batch([test[0][0][None]], [test[0][1][None]])
    say("one more", loss[0], metrics)


if __name__ == "__main__":
    main()
