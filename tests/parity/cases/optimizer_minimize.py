"""minimize, set_lr and the rest of what every optimizer has, on one small problem each."""
import paddle

from parity import case, raised

KINDS = {"SGD": {}, "Momentum": {"momentum": 0.8}, "Adam": {}, "AdamW": {"weight_decay": 0.1}, "Adamax": {},
         "Adadelta": {}, "RMSProp": {}, "Lamb": {}}


def trained(name):
    w = paddle.create_parameter([3], "float32", default_initializer=paddle.nn.initializer.Assign([1.0, -2.0, 0.5]))
    opt = getattr(paddle.optimizer, name)(learning_rate=0.1, parameters=[w], **KINDS[name])
    result = [isinstance(opt, paddle.optimizer.Optimizer), opt.get_lr()]
    for lr in (0.1, 0.05, 0.2):
        opt.set_lr(lr)
        loss = ((w - 0.25) ** 2).sum()
        loss.backward()  # in dynamic mode minimize takes the gradients that are there
        opt.minimize(loss)
        result += [w.detach().clone(), opt.get_lr()]
        opt.clear_gradients()
        result.append(None if w.grad is None else w.grad.clone())
    return result + [raised(lambda: opt.set_lr("a"), TypeError)]


def add(name):
    def one():
        return trained(name)
    one.__name__ = name.lower()
    case(*(f"paddle.optimizer.{name}.{method}" for method in ("minimize", "set_lr", "get_lr", "clear_gradients")),
         "paddle.optimizer.Optimizer", f"paddle.optimizer.{name}")(one)


for kind in KINDS:
    add(kind)
