"""Family `overhead`: what small work costs from Python: calls on one element, a tiny step, a chain of fifty ops. Over an
adapter of frameworks.py."""
from common import Row, Unit
from frameworks import random


def mlp_step(fw):
    nn, F = fw.nn, fw.F
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = fw.optimizer("sgd", net.parameters())
    x, y = fw.tensor(random(4, 8)), fw.tensor(random(4, 1))

    def step():
        F.mse_loss(net(x), y).backward()
        opt.step()
        fw.clear_grad(opt)
    return step


def chain(fw):
    x, y = fw.tensor(random(1), grad=True), fw.tensor(random(1))

    def call():
        z = x
        for _ in range(50):
            z = z * y
        z.backward()
        fw.clear(x)
    return call


def one(function, grad=False):
    def make(fw):
        x, y = fw.tensor(random(1), grad), fw.tensor(random(1, seed=1))
        return lambda: function(fw, x, y)
    return make


def bare(fw):
    """A C function that adds two Python floats: no call into C costs less. None where it was not built for this
    interpreter (benchmarks/extension/bare_call.c)."""
    try:
        from bare_call import add
    except ImportError:
        return None
    return lambda: add(1.0, 2.0)


def units(tiny=False):
    rows = (Row("call of a bare C extension", bare, limit="itself"),
            Row("x + y", one(lambda fw, x, y: x + y), limit="call of a bare C extension"),
            Row("x + y, recorded", one(lambda fw, x, y: x + y, True), limit="call of a bare C extension"),
            Row("x[0]", one(lambda fw, x, y: x[0])), Row("reshape", one(lambda fw, x, y: x.reshape([1, 1]))),
            Row("relu", one(lambda fw, x, y: fw.F.relu(x))), Row("zeros", one(lambda fw, x, y: fw.t.zeros([1]))),
            Row("50 ops, forward + backward", chain), Row("SGD step of a 3-layer tiny MLP", mlp_step))
    return [Unit("calls", rows, 0.15)]
