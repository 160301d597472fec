"""Regression with every knob of the optimizers: parameter groups, clipping, decay, ParamAttr, averaged gradients."""
import numpy as np
import paddle
import paddle.nn as nn

from common import say, seeded


def data():
    rng = np.random.RandomState(0)
    x = rng.standard_normal([64, 13]).astype("float32")
    y = (x @ rng.standard_normal([13, 1]) + 0.1 * rng.standard_normal([64, 1])).astype("float32")
    return paddle.to_tensor(x), paddle.to_tensor(y)


def network():
    decay = paddle.regularizer.L1Decay(0.01)
    return seeded(nn.Sequential(
        nn.Linear(13, 16, weight_attr=paddle.ParamAttr(learning_rate=0.5, regularizer=decay)), nn.Tanh(),
        nn.Linear(16, 8, bias_attr=paddle.ParamAttr(initializer=nn.initializer.Constant(0.1), need_clip=False)),
        nn.Softsign(), nn.Linear(8, 1, weight_attr=nn.initializer.KaimingNormal(), bias_attr=False)), 21)


def fit(name, make, steps=6, accumulate=1):
    x, y = data()
    net = network()
    opt = make(net)
    for step in range(steps):
        for part in range(accumulate):
            rows = slice(part * 64 // accumulate, (part + 1) * 64 // accumulate)
            loss = nn.functional.mse_loss(net(x[rows]), y[rows]) / accumulate
            loss.backward()
        opt.step()
        opt.clear_grad()
        if isinstance(opt._learning_rate, paddle.optimizer.lr.ReduceOnPlateau):
            opt._learning_rate.step(loss)
        elif isinstance(opt._learning_rate, paddle.optimizer.lr.LRScheduler):
            opt._learning_rate.step()
    say(name, loss, opt.get_lr(), *(p.abs().sum() for p in net.parameters()))


def main():
    optim, lr = paddle.optimizer, paddle.optimizer.lr
    fit("sgd", lambda n: optim.SGD(0.05, parameters=n.parameters(), weight_decay=0.01))
    fit("clip by value", lambda n: optim.SGD(0.05, n.parameters(), grad_clip=nn.ClipGradByValue(min=-0.1, max=0.2)))
    fit("clip by norm", lambda n: optim.Momentum(0.05, 0.8, n.parameters(), grad_clip=nn.ClipGradByNorm(0.3)))
    fit("clip by global norm", lambda n: optim.Momentum(
        0.05, parameters=n.parameters(), weight_decay=paddle.regularizer.L2Decay(0.02), use_nesterov=True,
        grad_clip=nn.ClipGradByGlobalNorm(clip_norm=0.5)), accumulate=2)
    fit("adagrad", lambda n: optim.Adagrad(0.1, epsilon=1e-6, parameters=n.parameters(), initial_accumulator_value=0.1))
    fit("adadelta", lambda n: optim.Adadelta(learning_rate=1.0, rho=0.9, parameters=n.parameters()))
    fit("rmsprop centred", lambda n: optim.RMSProp(0.01, rho=0.9, centered=True, parameters=n.parameters()))
    fit("lamb", lambda n: optim.Lamb(0.02, lamb_weight_decay=0.05, parameters=n.parameters(),
                                     exclude_from_weight_decay_fn=lambda p: len(p.shape) == 1))
    fit("adamw", lambda n: optim.AdamW(0.02, parameters=n.parameters(), weight_decay=0.1,
                                       apply_decay_param_fun=lambda name: "w_0" in name))
    fit("adam groups", lambda n: optim.Adam(0.02, parameters=[
        {"params": n[0].parameters(), "learning_rate": 0.1},
        {"params": n[2].parameters(), "weight_decay": 0.3, "beta1": 0.5}, {"params": n[4].parameters()}]))
    for name, schedule in [
            ("plateau", lr.ReduceOnPlateau(0.05, factor=0.5, patience=0, threshold=0.5)),
            ("polynomial", lr.PolynomialDecay(0.05, decay_steps=5, end_lr=0.01, power=2.0)),
            ("piecewise", lr.PiecewiseDecay(boundaries=[2, 4], values=[0.1, 0.05, 0.01])),
            ("lambda", lr.LambdaDecay(0.05, lr_lambda=lambda e: 0.9 ** e)),
            ("inverse", lr.InverseTimeDecay(0.05, gamma=0.1)), ("natural", lr.NaturalExpDecay(0.05, gamma=0.1)),
            ("one cycle", lr.OneCycleLR(max_learning_rate=0.1, total_steps=8)),
            ("cyclic", lr.CyclicLR(0.01, 0.1, step_size_up=3))]:
        fit(name, lambda n: optim.SGD(schedule, parameters=n.parameters()))
    net = network()
    (net(data()[0]) ** 2).sum().backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0) if hasattr(nn.utils, "clip_grad_norm_") else 0.0
    say("norm", norm, sum((p.grad ** 2).sum() for p in net.parameters()))
    vector = nn.utils.parameters_to_vector(net.parameters())
    say("vector", vector.shape[0], vector.sum())


if __name__ == "__main__":
    main()
