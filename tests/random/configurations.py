"""Random training configurations, run with the `paddle` that is installed: configurations.py OUT FIRST COUNT.

Each draws a net, a loss, an optimizer with its options, clipping, decay, attributes of parameters, groups and a schedule. Writes
{seed: (text of the configuration, its dtype, {mode: arrays or the text of an error})}: losses and parameters after STEPS steps from the same
weights. Under Proa there are two more modes: the loss compiled by to_static, and a training resumed from saved files."""
import os
import pathlib
import pickle
import random
import sys
import tempfile

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ops"))
import run_wire

STEPS, SAVED_AT = 6, 3
OPTIMIZERS = {
    "SGD": {}, "Momentum": {"use_nesterov": [True, False], "momentum": [0.9, 0.5]}, "Adam": {"beta1": [0.9, 0.5], "epsilon": [1e-8, 1e-3]},
    "AdamW": {"weight_decay": [0.01, 0.2], "apply_decay_param_fun": [None, "matrices"]},
    "Adamax": {"beta2": [0.999, 0.9]}, "Adagrad": {"initial_accumulator_value": [0.0, 0.1]}, "Adadelta": {"rho": [0.95, 0.5]},
    "RMSProp": {"momentum": [0.0, 0.9], "centered": [True, False], "rho": [0.95, 0.8]},
    "Lamb": {"lamb_weight_decay": [0.01, 0.1], "exclude_from_weight_decay_fn": [None, "matrices"]}}
SCHEDULES = {
    "StepDecay": (0.05, 2), "CosineAnnealingDecay": (0.05, 4), "LinearWarmup": (0.05, 4, 0.0, 0.05), "OneCycleLR": (0.05, 10),
    "CyclicLR": (0.01, 0.05, 2), "NoamDecay": (16, 3), "PiecewiseDecay": ([2, 4], [.1, .05, .01]), "ExponentialDecay": (0.05, 0.8),
    "LinearLR": (0.05, 4), "NaturalExpDecay": (0.05, 0.1), "InverseTimeDecay": (0.05, 0.3), "PolynomialDecay": (0.05, 4, 0.001, 2.0, True),
    "MultiStepDecay": (0.05, [2, 3]), "CosineAnnealingWarmRestarts": (0.05, 2, 2)}


def named(chosen):
    """Functions that a configuration calls by a name."""
    return (lambda p: ".w" in (p if isinstance(p, str) else p.name)) if chosen == "matrices" else chosen


class Configuration:
    """Drawn from a seed: the same choices on both sides, since each is a number of one generator."""

    def __init__(self, seed):
        self.rng, self.seed, self.said = random.Random(f"configuration {seed}"), seed, []
        self.dtype = self.pick("dtype", ["float64", "float64", "float32"])
        self.kind = self.pick("net", ["mlp", "conv", "rnn", "attention", "words"])
        self.optimizer = self.pick("optimizer", list(OPTIMIZERS))
        self.options = {key: self.pick(key, values) for key, values in OPTIMIZERS[self.optimizer].items()}
        clips = [None, ("ClipGradByGlobalNorm", 0.5), ("ClipGradByNorm", 0.3), ("ClipGradByValue", 0.05)]
        self.clip = self.pick("clip", [c for c in clips if self.dtype == "float32" or c is None or c[0] != "ClipGradByNorm"])
        self.decay = self.pick("decay", [None, 0.01, "L1Decay", "L2Decay"])
        self.schedule = self.pick("schedule", [None, *SCHEDULES])
        self.groups = self.pick("groups", [False, False, True])
        self.parts = self.pick("accumulated", [1, 1, 2])
        self.choices, self.at, self.told = [self.rng.random() for _ in range(40)], 0, []

    def pick(self, what, values):
        value = self.rng.choice(values)
        self.said.append(f"{what}={value}")
        return value

    def choose(self, values):
        """One of these while the net is made; told by Configuration.text."""
        value = values[int(self.choices[self.at] * len(values))]
        self.at += 1
        self.told.append(str(value))
        return value

    def text(self):
        return f"{self.seed}: {', '.join(self.said)}; net: {' '.join(self.told)}"

    # ---- nets

    def attribute(self):
        chosen = self.choose(["plain", "plain", "rate", "decay", "free"])
        if chosen == "plain":
            return None
        return {"rate": lambda: paddle.ParamAttr(learning_rate=0.3), "free": lambda: paddle.ParamAttr(need_clip=False),
                "decay": lambda: paddle.ParamAttr(regularizer=paddle.regularizer.L2Decay(0.1))}[chosen]()

    def act(self):
        return getattr(nn, self.choose(["ReLU", "GELU", "Tanh", "Silu", "Mish", "Hardswish", "ELU", "Softplus", "LeakyReLU"]))()

    def wrapped(self, layer):
        kind = self.choose(["", "", "", "weight", "spectral"])
        return {"": lambda x: x, "weight": lambda x: nn.utils.weight_norm(x, dim=self.choose([0, 1])),
                "spectral": nn.utils.spectral_norm}[kind](layer)

    def mlp(self):
        norm = getattr(nn, self.choose(["BatchNorm1D", "LayerNorm", "Identity"]))
        body = [self.wrapped(nn.Linear(6, 8, weight_attr=self.attribute(), bias_attr=self.choose([None, False])))]
        return nn.Sequential(*body, norm(8), self.act(), nn.Linear(8, 4, bias_attr=self.attribute())), (8, 6)

    def conv(self):
        groups, stride, dilation = self.choose([1, 2]), self.choose([1, 2]), self.choose([1, 2])
        padding = self.choose([0, 1, [2, 1], "SAME"])
        first = self.wrapped(nn.Conv2D(2, 4, self.choose([1, 3]), stride, padding, dilation, groups, weight_attr=self.attribute()))
        norm = {"batch": nn.BatchNorm2D(4), "group": nn.GroupNorm(2, 4), "instance": nn.InstanceNorm2D(4)}.get(
            self.choose(["batch", "group", "instance", "none"]))
        pool = {"max": nn.MaxPool2D(2, 2, ceil_mode=True), "mean": nn.AvgPool2D(2, 1, exclusive=False)}.get(
            self.choose(["max", "mean", "none"]))
        made = self.choose(["transposed", "point", "upsampled", "none"])
        back = {"transposed": nn.Conv2DTranspose(4, 3, 3, stride=2), "point": nn.Conv2D(4, 3, 1),
                "upsampled": nn.Upsample(scale_factor=2)}.get(made)
        layers = [layer for layer in (first, norm, self.act(), pool, back) if layer is not None]
        wide = 3 if made in ("transposed", "point") else 4
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(wide, 4)), (4, 2, 9, 8)

    def rnn(self):
        directions, layers = self.choose(["forward", "bidirect"]), self.choose([1, 2])
        cells = getattr(nn, self.choose(["LSTM", "GRU", "SimpleRNN"]))(5, 4, layers, direction=directions)
        net = nn.LayerList([cells, nn.Linear(8 if directions == "bidirect" else 4, 4)])
        lengths = self.choose([None, [5, 3, 1, 4]])
        lengths = lengths and paddle.to_tensor(lengths)
        net.call = lambda x: net[1](net[0](x, sequence_length=lengths)[0].mean(1))
        return net, (4, 5, 5)

    def attention(self):
        first = self.choose([True, False])
        encoder = nn.TransformerEncoderLayer(8, 2, 12, 0.0, self.choose(["relu", "gelu"]), normalize_before=first)
        net = nn.LayerList([encoder, nn.MultiHeadAttention(8, 2, need_weights=False), nn.Linear(8, 4)])
        mask = self.choose([None, "causal"])
        mask = mask and paddle.to_tensor(np.triu(np.full((5, 5), -1e4), 1).astype(self.dtype))
        net.call = lambda x: net[2](net[1](net[0](x, mask), x, x).mean(1))
        return net, (3, 5, 8)

    def words(self):
        sparse, pad = self.choose([True, False]), self.choose([None, 0, -1])
        # A program's gradients are dense, and Paddle's Adam corrects the bias of sparse ones by the next step's powers.
        self.compiles = not (sparse and self.optimizer == "Adam")
        net = nn.LayerList([nn.Embedding(9, 6, padding_idx=pad, sparse=sparse), nn.Linear(6, 4)])
        net.call = lambda x: net[1](net[0]((x * 4 + 4).astype("int64").clip(0, 8)).sum(1))
        return net, (4, 5)

    def loss(self):
        kind = self.choose(["labels", "smoothed", "weighted", "square", "smooth", "binary"])
        rng = np.random.RandomState(self.seed + 1)
        weights = paddle.to_tensor(rng.uniform(0.5, 2, 4).astype(self.dtype))
        return {"labels": lambda y, n: F.cross_entropy(y, n), "weighted": lambda y, n: F.cross_entropy(y, n, weight=weights),
                "smoothed": lambda y, n: F.cross_entropy(y, F.label_smooth(F.one_hot(n, 4).astype(self.dtype)), soft_label=True),
                "square": lambda y, n: F.mse_loss(y, F.one_hot(n, 4).astype(self.dtype)),
                "smooth": lambda y, n: F.smooth_l1_loss(y, F.one_hot(n, 4).astype(self.dtype), reduction="sum"),
                "binary": lambda y, n: F.binary_cross_entropy_with_logits(y, F.one_hot(n, 4).astype(self.dtype))}[kind]

    # ---- training

    def build(self):
        self.at, self.told, self.compiles = 0, [], True
        paddle.seed(1)
        self.net, self.shape = getattr(self, self.kind)()
        self.loss_of, rng = self.loss(), np.random.RandomState(self.seed)
        for p in [*self.net.parameters(), *(b for b in self.net.buffers() if "float" in str(b.dtype))]:
            low, high = (0.5, 1.5) if len(p.shape) == 1 else (-0.5, 0.5)
            p.set_value(rng.uniform(low, high, p.shape).astype(self.dtype))
        self.batches = [(rng.uniform(-1, 1, self.shape).astype(self.dtype), rng.randint(0, 4, self.shape[0])) for _ in range(4)]
        self.rate = getattr(paddle.optimizer.lr, self.schedule)(*SCHEDULES[self.schedule]) if self.schedule else 0.05
        options = {key: named(value) for key, value in self.options.items()}
        if self.decay is not None and self.optimizer not in ("AdamW", "Lamb"):
            options["weight_decay"] = getattr(paddle.regularizer, self.decay)(0.02) if isinstance(self.decay, str) else self.decay
        if self.clip:
            options["grad_clip"] = getattr(nn, self.clip[0])(self.clip[1])
        held = self.net.parameters()
        if self.groups and len(held) > 1:
            held = [{"params": held[:1], "learning_rate": 0.5}, {"params": held[1:]}]
        self.opt = getattr(paddle.optimizer, self.optimizer)(self.rate, parameters=held, **options)

    def forward(self, x, n):
        return self.loss_of(getattr(self.net, "call", self.net)(x), n)

    def train(self, first, last, forward):
        losses = []
        for step in range(first, last):
            for part in range(self.parts):
                x, n = self.batches[(step * self.parts + part) % len(self.batches)]
                loss = forward(paddle.to_tensor(x), paddle.to_tensor(n))
                loss.backward()
                losses.append(np.array(loss.numpy()))
            self.opt.step()
            self.opt.clear_grad()
            if self.schedule:
                self.rate.step()
        return losses

    def state(self):
        return [np.array(v.numpy()) for v in self.net.state_dict().values()]


def eager(c):
    c.build()
    return [*c.train(0, STEPS, c.forward), *c.state()]


def compiled(c):
    c.build()
    return [*c.train(0, STEPS, paddle.jit.to_static(c.forward, full_graph=True) if c.compiles else c.forward), *c.state()]


def resumed(c):
    with tempfile.TemporaryDirectory() as folder:
        c.build()
        losses = c.train(0, SAVED_AT, c.forward)
        paddle.save(c.net.state_dict(), os.path.join(folder, "net.pdparams"))
        paddle.save(c.opt.state_dict(), os.path.join(folder, "net.pdopt"))
        with paddle.utils.unique_name.guard():  # names as in another process
            c.build()
            c.net.set_state_dict(paddle.load(os.path.join(folder, "net.pdparams")))
            c.opt.set_state_dict(paddle.load(os.path.join(folder, "net.pdopt")))
            return [*losses, *c.train(SAVED_AT, STEPS, c.forward), *c.state()]


def attempt(mode, c):
    try:
        with paddle.utils.unique_name.guard():
            return mode(c)
    except Exception as error:  # whatever the framework raises: it refuses this configuration
        return f"{type(error).__name__}: {error}"


def main():
    out, first, count = sys.argv[1:4]
    proa = paddle.__name__ == "proa"

    def trained(seed):
        c = Configuration(seed)
        paddle.set_default_dtype(c.dtype)
        modes = {mode.__name__: attempt(mode, c) for mode in ([eager, compiled, resumed] if proa else [eager])}
        return c.text(), c.dtype, modes
    pathlib.Path(out).write_bytes(pickle.dumps(run_wire.answers([(seed, seed) for seed in range(int(first), int(first) + int(count))], trained)))


if __name__ == "__main__":
    main()
