#!/usr/bin/env python3
"""Trains small models for 20 steps with real Paddle 2.6.2, for every optimizer.

    train_steps.py OUT          (run with the oracle's Python)

Writes OUT/<model>/x, y and one file a parameter by its path, in Paddle's binary tensor format, and
OUT/<model>/<optimizer>.txt with a loss a line.
"""
import os
import pathlib
import sys

os.environ.setdefault("GLOG_minloglevel", "3")
import numpy as np
import paddle
from paddle import nn

from train_steps_cases import RATES, STEPS

CLASSES = {"sgd": "SGD", "momentum": "Momentum", "adam": "Adam", "adamw": "AdamW", "adagrad": "Adagrad",
           "rmsprop": "RMSProp", "adadelta": "Adadelta", "adamax": "Adamax", "lamb": "Lamb"}


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def cnn():
    return nn.Sequential(nn.Conv2D(1, 4, 3, padding=1), nn.BatchNorm2D(4), nn.ReLU(), nn.MaxPool2D(2),
                         nn.Flatten(), nn.Linear(64, 4))


def transformer():
    return nn.Sequential(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation="gelu"), nn.Linear(16, 4))


MODELS = {"mlp": (mlp, [32, 8], [32]), "cnn": (cnn, [16, 1, 8, 8], [16]),
          "transformer": (transformer, [4, 6, 16], [4, 6])}


def optimizer(name, net):
    more = {} if name in ("adamw", "lamb") else {"weight_decay": 0.01}
    return getattr(paddle.optimizer, CLASSES[name])(
        learning_rate=RATES[name], parameters=net.parameters(),
        grad_clip=nn.ClipGradByGlobalNorm(1.0), **more)


def main():
    out = pathlib.Path(sys.argv[1])
    for model, (make, x_shape, y_shape) in MODELS.items():
        folder = out / model
        folder.mkdir(parents=True, exist_ok=True)
        paddle.seed(1)
        rng = np.random.default_rng(1)
        x = paddle.to_tensor(rng.standard_normal(x_shape).astype("float32"))
        y = paddle.to_tensor(rng.integers(0, 4, y_shape))
        net = make()
        start = {k: v.numpy().copy() for k, v in net.state_dict().items()}
        for name, value in {"x": x, "y": y, **{k: paddle.to_tensor(v) for k, v in start.items()}}.items():
            paddle.save(value, str(folder / name), use_binary_format=True)
        for name in RATES:
            net.set_state_dict({k: paddle.to_tensor(v) for k, v in start.items()})
            opt, losses = optimizer(name, net), []
            for _ in range(STEPS):
                scores = net(x)
                loss = nn.functional.cross_entropy(scores.reshape([-1, 4]), y.reshape([-1]))
                loss.backward()
                opt.step()
                opt.clear_grad()
                losses.append(float(loss))
            (folder / f"{name}.txt").write_text("".join(f"{v:.9g}\n" for v in losses))


if __name__ == "__main__":
    main()
