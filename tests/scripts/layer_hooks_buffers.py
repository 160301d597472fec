"""Layers from within: parameters, buffers, hooks, apply, containers, copies and structured names."""
import copy

import numpy as np
import paddle
import paddle.nn as nn

from common import say, seeded


class Normalizer(nn.Layer):
    """Subtracts a running mean that it keeps in a buffer, and scales by a parameter."""

    def __init__(self, size, momentum=0.9):
        super().__init__(name_scope="normalizer")
        self.momentum = momentum
        self.register_buffer("mean", paddle.zeros([size]))
        self.register_buffer("seen", paddle.to_tensor([0], dtype="int64"), persistable=False)
        self.gain = self.create_parameter(shape=[size], dtype="float32", default_initializer=nn.initializer.Constant(1.5))
        self.add_parameter("shift", paddle.create_parameter([size], "float32", is_bias=True))

    def forward(self, x):
        if self.training:
            with paddle.no_grad():
                self.mean = self.momentum * self.mean + (1 - self.momentum) * x.mean(axis=0)
                self.seen += x.shape[0]
        return (x - self.mean) * self.gain + self.shift


class Mixture(nn.Layer):
    def __init__(self):
        super().__init__()
        self.experts = nn.LayerList([nn.Linear(6, 6) for _ in range(3)])
        self.experts.append(nn.Sequential(("inner", nn.Linear(6, 4)), ("outer", nn.Linear(4, 6))))
        self.gates = nn.ParameterList([self.create_parameter([6, 1]) for _ in range(4)])
        self.add_sublayer("norm", Normalizer(6))
        self.named = nn.LayerDict({"head": nn.Linear(6, 2), "act": nn.GELU()})

    def forward(self, x):
        x = self.norm(x)
        gate = paddle.concat([x @ g for g in self.gates], axis=1)
        parts = paddle.stack([e(x) for e in self.experts], axis=1)
        mixed = (nn.functional.softmax(gate).unsqueeze(-1) * parts).sum(axis=1)
        return self.named["head"](self.named["act"](mixed))


def main():
    net = seeded(Mixture(), 11)
    print(net)
    print([name for name, _ in net.named_parameters()])
    print([name for name, _ in net.named_sublayers()])
    print([name for name, _ in net.named_buffers()], sorted(net.state_dict())[-6:])
    print(net.full_name().rsplit("_", 1)[0], net.norm.full_name().rsplit("_", 1)[0], [len(net.sublayers()),
          len(list(net.children())), len(net.experts), len(net.named)])
    log = []
    hooks = [net.experts[0].register_forward_post_hook(lambda layer, inp, out: out * 2),
             net.norm.register_forward_pre_hook(lambda layer, inp: (inp[0] + 0.5,)),
             net.register_forward_post_hook(lambda layer, inp, out: log.append(float(out.sum())))]
    x = paddle.to_tensor(np.random.RandomState(0).standard_normal([16, 6]).astype("float32"))
    net.gates[0].register_hook(lambda grad: grad * 0.5)
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    for step in range(4):
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
        net.clear_gradients()
        say(f"step {step}", loss, net.norm.mean.sum(), net.norm.seen)
    say("log", *log)
    for hook in hooks:
        hook.remove()
    net.eval()
    twin = copy.deepcopy(net)
    say("twin", net(x).sum(), twin(x).sum())

    def widen(layer):
        if isinstance(layer, nn.Linear):
            layer.weight.set_value(layer.weight * 1.1)

    twin.apply(widen)
    say("applied", net(x).sum(), twin(x).sum())
    state = {k: v.numpy() for k, v in net.state_dict().items()}
    twin.set_state_dict(state)
    say("restored", twin(x).sum())
    twin.to(dtype="float64")
    out = twin(x.astype("float64"))
    print(out.dtype, twin.norm.mean.dtype, len(log))
    del twin.named["act"]
    twin.experts.insert(0, nn.Identity())
    print(list(twin.named.keys()), len(twin.experts), hasattr(twin, "nothing"))
    nn.initializer.set_global_initializer(nn.initializer.Constant(0.25), nn.initializer.Constant(0.5))
    layer = nn.Linear(2, 2)
    nn.initializer.set_global_initializer(None)
    say("global", *layer.weight.flatten().tolist(), *layer.bias.tolist())
    wn = nn.utils.weight_norm(seeded(nn.Linear(3, 2), 2), name="weight", dim=1)
    print(sorted(name for name, _ in wn.named_parameters()))
    say("weight norm", wn(paddle.ones([1, 3])), nn.utils.remove_weight_norm(wn)(paddle.ones([1, 3])))


if __name__ == "__main__":
    main()
