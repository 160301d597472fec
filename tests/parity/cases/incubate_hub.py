"""paddle.incubate's optimizers, paddle.hub on a local folder, Viterbi decoding."""
import os
import tempfile

import numpy as np
import paddle
from paddle.incubate import LookAhead, ModelAverage

from parity import array, case, fill, ints, raised, rand

I = "paddle.incubate."


def trained(make, steps=6, inside=None):
    net = fill(paddle.nn.Linear(3, 2))
    opt, extra = make(net)
    x = paddle.to_tensor(array(5, 3).astype("float32"))
    out = []
    for _ in range(steps):
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
        if extra is not None:
            extra.step()
        opt.clear_grad()
        out.append(net.weight.detach().clone())
    if inside is not None:
        inside(net, extra, out)
    return out, sorted(opt.state_dict())


@case(I + "LookAhead", I + "LookAhead.step", I + "LookAhead.minimize", "paddle.incubate", grad=False)
def lookahead():
    def make(net):
        inner = paddle.optimizer.Momentum(0.1, 0.9, parameters=net.parameters())
        return LookAhead(inner, alpha=0.3, k=2), None
    out, names = trained(make)
    net = fill(paddle.nn.Linear(2, 1))
    opt = LookAhead(paddle.optimizer.SGD(0.1, parameters=net.parameters()))
    for _ in range(6):
        loss = net(paddle.ones([1, 2])).sum()
        loss.backward()
        opt.minimize(loss)
        opt.clear_grad()
    return out, [n.rpartition("linear")[2].partition(".")[2] for n in names], net.weight.detach(), \
        raised(lambda: LookAhead(None)), raised(lambda: LookAhead(opt, alpha=2.0)), raised(lambda: LookAhead(opt, k=0))


@case(I + "ModelAverage", I + "ModelAverage.step", I + "ModelAverage.apply", I + "ModelAverage.restore",
      I + "ModelAverage.minimize", grad=False)
def model_average():
    def inside(net, average, out):
        with average.apply():
            out.append(net.weight.detach().clone())
        out.append(net.weight.detach().clone())
        with average.apply(need_restore=False):
            pass
        out.append(net.weight.detach().clone())
        average.restore()
        out.append(net.weight.detach().clone())
    results = []
    for window in ((0.15, 2, 10), (0.5, 2, 3), (1.0, 10000, 10000)):
        def make(net):
            return paddle.optimizer.SGD(0.2, parameters=net.parameters()), ModelAverage(
                window[0], parameters=net.parameters(), min_average_window=window[1], max_average_window=window[2])
        results.append(trained(make, 9, inside)[0])
    return results


HUBCONF = '''
dependencies = ["numpy"]
def tiny(pretrained=False, size=2):
    """A tiny model."""
    return [pretrained, size]
def _hidden():
    pass
constant = 3
'''


@case("paddle.hub.list", "paddle.hub.help", "paddle.hub.load", "paddle.hub", grad=False)
def hub():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "hubconf.py"), "w") as f:
            f.write(HUBCONF)
        return [paddle.hub.list(folder, source="local"), paddle.hub.help(folder, "tiny", source="local"),
                paddle.hub.load(folder, "tiny", source="local", size=5),
                raised(lambda: paddle.hub.load(folder, "other", source="local")),
                raised(lambda: paddle.hub.list(folder, source="elsewhere")),
                raised(lambda: paddle.hub.load(folder, 3, source="local"))]


@case("paddle.text.viterbi_decode", "paddle.text.ViterbiDecoder", grad=False)
def viterbi():
    out = []
    for tags in (True, False):
        potentials, transitions = rand(4, 6, 5, grad=False), rand(5, 5, grad=False)
        for lengths in (paddle.to_tensor([6, 3, 1, 5]), paddle.to_tensor([2, 2, 1, 2]), ints(4, low=1, high=7)):
            out.append(paddle.text.viterbi_decode(potentials, transitions, lengths, tags))
        out.append(paddle.text.ViterbiDecoder(transitions, tags)(potentials, paddle.to_tensor(np.array([4, 4, 4, 4]))))
    return out
