"""Every layer of paddle.nn in three modes, training and evaluating: eagerly, under to_static and in static mode the same
bits, with optimizing passes 1e-5 of the range; gradients of inputs and parameters, and buffers, too."""
import contextlib
import inspect

import layer_cases
import modes
import numpy as np
import pytest

import proa as paddle
from proa import _core

static = paddle.static


@contextlib.contextmanager
def fresh(make, training):
    """The layer with parameters that depend on its seed alone."""
    with paddle.utils.unique_name.guard():
        paddle.seed(7)
        net = make()
        net.train() if training else net.eval()
        yield net


class LayerRun:
    """One layer on fixed inputs."""

    def __init__(self, name, training):
        self.make, makers = layer_cases.LAYERS[name]
        self.training = training
        rng = np.random.RandomState(3)
        self.inputs = [make(rng) for make in makers]
        with fresh(self.make, training) as net:
            self.state = {key: value.numpy() for key, value in net.state_dict().items()}
        self.weights = None

    def leaves(self):
        tensors = [paddle.to_tensor(a) for a in self.inputs]
        for t in tensors:
            t.stop_gradient = not modes.floating(t)
        return tensors

    def run(self, convert):
        """(outputs, gradients, state afterwards)"""
        with fresh(self.make, self.training) as net:
            net.set_state_dict(self.state)
            called = paddle.jit.to_static(net, full_graph=True) if convert else net
            tensors = self.leaves()
            paddle.seed(5)
            outs = modes.flat(called(*tensors))
            wants = [t for t in tensors if not t.stop_gradient] + [p for p in net.parameters() if not p.stop_gradient]
            if self.weights is None:
                self.weights = modes.weights(outs)
            seeds = [(o, w) for o, w in zip(outs, self.weights) if w is not None]
            grads = _core.grad([o for o, _ in seeds], wants, [w for _, w in seeds], allow_unused=True) \
                if seeds and wants else []
            return modes.values(outs), modes.values(grads), modes.values(list(net.state_dict().values()))

    def converted(self, passes):
        was = _core.get_flag("passes")
        _core.set_flag("passes", passes)
        try:
            return self.run(True)
        finally:
            _core.set_flag("passes", was)

    def as_program(self, passes):
        main, startup, scope = static.Program(), static.Program(), static.Scope()
        paddle.enable_static()
        try:
            with static.scope_guard(scope), static.program_guard(main, startup), fresh(self.make, self.training) as net:
                data = [static.data(f"in_{i}", list(a.shape), str(a.dtype)) for i, a in enumerate(self.inputs)]
                for t in data:
                    t.stop_gradient = not modes.floating(t)
                outs = modes.flat(net(*data))
                wants = [t for t in data if not t.stop_gradient] + [p for p in net.parameters() if not p.stop_gradient]
                seeds = [(o, w) for o, w in zip(outs, self.weights) if w is not None]
                given = [static.data(f"seed_{k}", list(w.shape), w.dtype) for k, (_, w) in enumerate(seeds)]
                grads = static.gradients([o for o, _ in seeds], wants, given) if seeds and wants else []
                exe = static.Executor()
                exe.run(startup)
                net.set_state_dict(self.state)
                feed = {f"in_{i}": a for i, a in enumerate(self.inputs)}
                feed.update({f"seed_{k}": w for k, (_, w) in enumerate(seeds)} if given and wants else {})
                wanted = [*outs, *[g for g in grads if g is not None], *net.state_dict().values()]
                paddle.seed(5)
                program = static.CompiledProgram(main) if passes else main
                made = iter([t._value() for t in exe.run(program, feed, wanted, return_numpy=False)])
                return (modes.values([next(made) for _ in outs]),
                        modes.values([None if g is None else next(made) for g in grads]), modes.values(list(made)))
        finally:
            paddle.disable_static()


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", layer_cases.LAYERS)
def test_layer(name, training, record_property):
    one = LayerRun(name, training)
    want = one.run(False)
    problems = []
    for mode, body, limit in (("to_static", lambda: one.converted("none"), 0), ("static", lambda: one.as_program(False), 0),
                              ("to_static, passes", lambda: one.converted("all"), 1e-5),
                              ("static, passes", lambda: one.as_program(True), 1e-5)):
        try:
            got = body()
        except Exception as error:
            problems.append(f"{mode}: {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        for what, a, b in zip(("output", "gradient", "state"), want, got):
            line = modes.apart(a, b, limit)
            problems += [f"{mode}: {what} {line}"] if line else []
    record_property("in three modes", 1)
    assert not problems, "\n".join(problems)


def test_every_layer_is_here():
    everywhere = {name for name in dir(paddle.nn) if inspect.isclass(getattr(paddle.nn, name))
                  and issubclass(getattr(paddle.nn, name), paddle.nn.Layer)}
    missing = everywhere - {name.split(" ")[0] for name in layer_cases.LAYERS}
    assert not missing, sorted(missing)
