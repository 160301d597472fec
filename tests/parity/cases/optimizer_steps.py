"""Ten steps of a small model by every optimizer and option: losses, parameters, names of the state."""
import paddle
from parity import array, case, fill

opt = paddle.optimizer


def model():
    with paddle.utils.unique_name.guard():
        net = paddle.nn.Sequential(paddle.nn.Linear(4, 5), paddle.nn.Tanh(), paddle.nn.Linear(5, 3))
    return fill(net)


def train(make, steps=10, use_minimize=False, net=None):
    net = net or model()
    with paddle.utils.unique_name.guard():
        o = make(net)
        losses = []
        x, y = paddle.to_tensor(array(6, 4).astype("float32")), paddle.to_tensor(array(6, 3).astype("float32"))
        for _ in range(steps):
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            o.minimize(loss) if use_minimize else o.step()
            o.clear_grad()
            losses.append(float(loss))
            if isinstance(o._learning_rate, opt.lr.LRScheduler):
                o._learning_rate.step()
    state = {k: v for k, v in o.state_dict().items() if k != "LR_Scheduler"}
    return [losses, [p.detach() for p in net.parameters()], state, o.get_lr()]


def add(name, label, names=(), **options):
    # ten steps of float32 rounding, which fused and separate loops do differently
    @case(f"paddle.optimizer.{name}", f"paddle.optimizer.{name}.step", f"paddle.optimizer.{name}.clear_grad",
          f"paddle.optimizer.{name}.get_lr", *names, grad=False, tol=2e-4)
    def ten_steps():
        made = {k: v() if callable(v) and k in ("grad_clip", "learning_rate", "weight_decay") else v
                for k, v in options.items()}
        return train(lambda net: getattr(opt, name)(parameters=net.parameters(), **made))
    from parity import CASES
    CASES[-1].id = f"optimizer_steps::{name}_{label}"


for each, plain in (("SGD", {}), ("Momentum", {}), ("Adam", {}), ("AdamW", {}), ("Adamax", {}), ("RMSProp", {}),
                    ("Adagrad", {}), ("Adadelta", {}), ("Lamb", {})):
    add(each, "plain", learning_rate=0.05, **plain)
    add(each, "clip", ["paddle.nn.ClipGradByGlobalNorm"], learning_rate=0.05,
        grad_clip=lambda: paddle.nn.ClipGradByGlobalNorm(0.1))
    add(each, "schedule", learning_rate=lambda: opt.lr.StepDecay(0.1, 3, 0.5))
    if each not in ("AdamW", "Lamb"):
        add(each, "decay", learning_rate=0.05, weight_decay=0.1)
        add(each, "l1", ["paddle.regularizer.L1Decay"], learning_rate=0.05,
            weight_decay=lambda: paddle.regularizer.L1Decay(0.05))
        add(each, "l2", ["paddle.regularizer.L2Decay"], learning_rate=0.05,
            weight_decay=lambda: paddle.regularizer.L2Decay(0.05))
add("Momentum", "nesterov", learning_rate=0.05, momentum=0.8, use_nesterov=True, weight_decay=0.1, rescale_grad=1.0)
add("Adam", "betas", learning_rate=0.05, beta1=0.8, beta2=0.95, epsilon=1e-3)
add("AdamW", "decay", learning_rate=0.05, weight_decay=0.2, apply_decay_param_fun=lambda n: "w_0" in n)
add("RMSProp", "centered", learning_rate=0.05, rho=0.9, momentum=0.5, centered=True, epsilon=1e-3)
add("Adagrad", "initial", learning_rate=0.05, initial_accumulator_value=0.5)
add("Adadelta", "rho", learning_rate=1.0, rho=0.8, epsilon=1e-4)
add("Lamb", "exclude", learning_rate=0.05, lamb_weight_decay=0.1,
    exclude_from_weight_decay_fn=lambda p: "b_0" in p.name)


@case("paddle.optimizer.Adam", "paddle.optimizer.Adam.minimize", "paddle.optimizer.Optimizer.minimize", grad=False, tol=2e-4)
def adam_minimize():
    return train(lambda net: opt.Adam(0.05, parameters=net.parameters()), use_minimize=True)


def groups(kind, **more):
    def make(net):
        return kind(learning_rate=0.1, weight_decay=0.01, parameters=[
            {"params": net[0].parameters()},
            {"params": net[2].parameters(), "weight_decay": 0.2, "learning_rate": 0.1, **more}])
    return train(make)


@case("paddle.optimizer.SGD", "paddle.optimizer.Momentum", "paddle.optimizer.Adam", "paddle.optimizer.AdamW", grad=False,
      tol=2e-4)
def parameter_groups():
    return [groups(opt.SGD), groups(opt.Momentum, momentum=0.5), groups(opt.Adam, beta1=0.7), groups(opt.AdamW)]


@case("paddle.ParamAttr", grad=False, tol=2e-4)
def param_attr():
    def net():
        with paddle.utils.unique_name.guard():
            attr = paddle.ParamAttr(learning_rate=0.1, regularizer=paddle.regularizer.L2Decay(0.3))
            frozen = paddle.ParamAttr(trainable=False)
            return fill(paddle.nn.Sequential(paddle.nn.Linear(4, 5, weight_attr=attr, bias_attr=frozen),
                                             paddle.nn.Linear(5, 3)))
    return [train(lambda n: kind(0.1, parameters=n.parameters(), weight_decay=0.05), net=net())
            for kind in (opt.SGD, opt.Adam)]


@case("paddle.optimizer.Optimizer.state_dict", "paddle.optimizer.Optimizer.set_state_dict",
      "paddle.optimizer.Optimizer.get_opti_var_name_list", grad=False, tol=2e-4)
def state_goes_on():
    out = []
    for _ in range(2):
        net = model()
        with paddle.utils.unique_name.guard():
            o = opt.Adam(opt.lr.StepDecay(0.1, 2), parameters=net.parameters())
            if out:
                o.set_state_dict(out[-1][0])
            loss = net(paddle.ones([2, 4])).sum()
            loss.backward()
            o.step()
            o._learning_rate.step()
        out.append([o.state_dict(), sorted(o.get_opti_var_name_list()), o.get_lr()])
    return out


@case("paddle.optimizer.Optimizer.set_lr", "paddle.optimizer.Optimizer.get_lr", "paddle.optimizer.SGD.set_lr",
      "paddle.optimizer.Optimizer.set_lr_scheduler", "paddle.optimizer.Optimizer.clear_grad",
      "paddle.optimizer.Optimizer.step", grad=False)
def rates():
    net = model()
    o = opt.SGD(0.1, parameters=net.parameters())
    got = [o.get_lr()]
    o.set_lr(0.3)
    got.append(o.get_lr())
    o.set_lr_scheduler(opt.lr.StepDecay(0.2, 1, 0.5))
    got.append(o.get_lr())
    net(paddle.ones([1, 4])).sum().backward()
    o.clear_grad()
    got.append([p.grad.clone() for p in net.parameters()])
    o.clear_grad(set_to_zero=False)
    return got


@case("paddle.optimizer.Optimizer.apply_gradients", "paddle.optimizer.Optimizer.backward", grad=False)
def apply_gradients():
    net = model()
    o = opt.SGD(0.1, parameters=net.parameters())
    loss = net(paddle.ones([1, 4])).sum()
    loss.backward()
    o.apply_gradients(o.backward(loss))
    return [p.detach() for p in net.parameters()]
