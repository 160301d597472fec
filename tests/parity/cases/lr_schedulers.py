"""Thirty steps of every learning-rate scheduler, by step() and step(epoch), and their states."""
import paddle
from parity import case

lr = paddle.optimizer.lr
MAKERS = {
    "NoamDecay": lambda: lr.NoamDecay(d_model=0.01, warmup_steps=7),
    "PiecewiseDecay": lambda: lr.PiecewiseDecay([3, 6, 9], [0.1, 0.2, 0.3, 0.4]),
    "NaturalExpDecay": lambda: lr.NaturalExpDecay(0.5, 0.1),
    "InverseTimeDecay": lambda: lr.InverseTimeDecay(0.5, 0.1),
    "PolynomialDecay": lambda: lr.PolynomialDecay(0.5, 12, power=2.0),
    "LinearWarmup": lambda: lr.LinearWarmup(0.5, 8, 0.0, 0.5),
    "ExponentialDecay": lambda: lr.ExponentialDecay(0.5, 0.9),
    "MultiStepDecay": lambda: lr.MultiStepDecay(0.5, [2, 4, 16], 0.8),
    "StepDecay": lambda: lr.StepDecay(0.5, 5, 0.8),
    "LambdaDecay": lambda: lr.LambdaDecay(0.5, lambda x: 0.95 ** x),
    "CosineAnnealingDecay": lambda: lr.CosineAnnealingDecay(0.5, 10, 0.01),
    "MultiplicativeDecay": lambda: lr.MultiplicativeDecay(0.5, lambda x: 0.95),
    "OneCycleLR": lambda: lr.OneCycleLR(0.5, 40),
    "CyclicLR": lambda: lr.CyclicLR(0.1, 0.5, 6, 4),
    "LinearLR": lambda: lr.LinearLR(0.5, 10),
    "CosineAnnealingWarmRestarts": lambda: lr.CosineAnnealingWarmRestarts(0.5, 4, 2),
}


def walk(s, jump=None):
    rates = [s(), s.get_lr() if jump is None else s.last_lr]
    for i in range(30):
        s.step() if jump is None else s.step(i * jump)
        rates.append(s())
    state = s.state_dict()
    return [rates, s.last_epoch, state]


def add(name):
    @case(f"paddle.optimizer.lr.{name}", f"paddle.optimizer.lr.{name}.step", f"paddle.optimizer.lr.{name}.get_lr",
          "paddle.optimizer.lr.LRScheduler.state_dict", "paddle.optimizer.lr.LRScheduler.step", grad=False)
    def thirty_steps():
        first = MAKERS[name]()
        second = MAKERS[name]()
        for _ in range(9):
            first.step()
        second.set_state_dict(first.state_dict())
        return [walk(MAKERS[name]()), walk(MAKERS[name](), 1), second(), second.last_epoch]
    thirty_steps.__name__ = name


for one in MAKERS:
    add(one)
for made in __import__("parity").CASES:
    made.id = f"lr_schedulers::{made.fn.__name__}"


@case("paddle.optimizer.lr.ReduceOnPlateau", "paddle.optimizer.lr.ReduceOnPlateau.step",
      "paddle.optimizer.lr.ReduceOnPlateau.state_keys", grad=False)
def plateau():
    out = []
    for options in ({}, {"mode": "max"}, {"threshold_mode": "abs", "threshold": 0.3}, {"cooldown": 2, "min_lr": 0.01}):
        s = lr.ReduceOnPlateau(1.0, factor=0.5, patience=2, **options)
        for i in range(30):
            s.step(1.0 / (1 + min(i, 5)) if i % 3 else 0.4)
            out.append(s())
        s.step(paddle.to_tensor(0.25))
        out.append(sorted(s.state_dict()))
    return out


@case("paddle.optimizer.lr.LinearWarmup", "paddle.optimizer.lr.LinearWarmup.state_dict",
      "paddle.optimizer.lr.LinearWarmup.set_state_dict", grad=False)
def warmup_of_scheduler():
    s = lr.LinearWarmup(lr.StepDecay(0.5, 3, 0.5), 5, 0.1, 0.5)
    rates = walk(s)
    other = lr.LinearWarmup(lr.StepDecay(0.5, 3, 0.5), 5, 0.1, 0.5)
    other.set_state_dict(s.state_dict())
    other.step()
    return [rates, other()]


@case("paddle.optimizer.lr.PolynomialDecay", "paddle.optimizer.lr.OneCycleLR", "paddle.optimizer.lr.CyclicLR",
      "paddle.optimizer.lr.CosineAnnealingWarmRestarts", grad=False)
def variants():
    return [walk(lr.PolynomialDecay(0.5, 7, cycle=True)), walk(lr.OneCycleLR(0.5, 40, three_phase=True)),
            walk(lr.OneCycleLR(0.5, 40, anneal_strategy="linear")), walk(lr.CyclicLR(0.1, 0.5, 6, mode="triangular2")),
            walk(lr.CyclicLR(0.1, 0.5, 6, mode="exp_range", exp_gamma=0.9)),
            walk(lr.CyclicLR(0.1, 0.5, 6, scale_fn=lambda x: 0.9 ** x, scale_mode="iterations")),
            walk(lr.CosineAnnealingWarmRestarts(0.5, 4, 1)), walk(lr.CosineAnnealingWarmRestarts(0.5, 3, 2), 1)]


@case("paddle.optimizer.lr.LRScheduler", "paddle.optimizer.lr.LRScheduler.get_lr",
      "paddle.optimizer.lr.LRScheduler.set_state_dict", "paddle.optimizer.lr.LRScheduler.set_dict",
      "paddle.optimizer.lr.LRScheduler.state_keys", grad=False)
def custom():
    class Halving(lr.LRScheduler):
        def get_lr(self):
            return self.base_lr / 2 ** self.last_epoch
    s, other = Halving(0.5), Halving(0.5)
    s.step()
    s.step(4)
    other.set_dict(s.state_dict())
    return [s(), other(), other.last_epoch]
