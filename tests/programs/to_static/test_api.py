"""to_static beside the rest of Paddle: methods, switches, hooks, prints, containers in attributes."""
import copy

import numpy as np
import pytest

from nets import Decorated, make, tensor
import proa as paddle
from proa.jit.dy2static.errors import ConversionError
from proa.static import BuildStrategy, InputSpec

nn = paddle.nn


def test_other_methods():
    class Two(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x)

        @paddle.jit.to_static(input_spec=[InputSpec([None, 2])])
        def positive(self, x):
            y = self.fc(x)
            return y if y.sum() > 0 else -y
    a, b = Two(), Two()
    x = tensor(3, 2)
    assert float(a.positive(x).sum()) >= 0
    assert a.positive is a.positive and a.positive is not b.positive
    twin = copy.deepcopy(a)
    assert np.array_equal(twin.positive(x).numpy(), a.positive(x).numpy())


def test_switch_and_rollback():
    net = make(Decorated)
    assert type(net.forward).__name__ == "StaticFunction"
    paddle.jit.ProgramTranslator().enable(False)
    try:
        seen = []
        f = paddle.jit.to_static(lambda x: seen.append(1) or x)
        f(tensor(1)), f(tensor(1))
        assert len(seen) == 2
    finally:
        paddle.jit.enable_to_static(True)
    before = net(tensor(3, 4)).numpy()
    assert net.forward.rollback().__func__ is net.forward.__func__
    assert not hasattr(net.forward, "program_cache")
    assert np.array_equal(net(tensor(3, 4)).numpy(), before)

    other = paddle.jit.to_static(make())
    other.forward.rollback()
    assert "forward" not in vars(other)


def test_not_to_static():
    calls = []

    @paddle.jit.not_to_static
    def plain(x):
        calls.append(bool(1))
        return x + 1

    @paddle.jit.to_static
    def f(x):
        return plain(x) * 2
    f(tensor(2)), f(tensor(2))
    assert calls == [True]


def test_what_people_look_at(capsys):
    @paddle.jit.to_static(input_spec=[InputSpec([None, 3], name="x")], build_strategy=BuildStrategy())
    def f(x):
        if x.sum() > 0:
            return x
        return -x
    assert "_proa.if_(" in f.code
    assert len(f.main_program.blocks) == 3 and f.concrete_program.main_program is f.main_program
    assert [var.name for var in f.inputs] == ["x"] and len(f.outputs) == 1
    paddle.jit.set_code_level(1, also_to_stdout=True)
    try:
        paddle.jit.to_static(lambda x: x if x.sum() > 1 else -x)(tensor(2))
        assert "_proa.choose(" in capsys.readouterr().out
    finally:
        paddle.jit.set_code_level(-1)
    with pytest.raises(TypeError):
        paddle.jit.set_verbosity("loud")
    with pytest.raises(TypeError):
        paddle.jit.to_static(3)
    with pytest.raises(TypeError):
        paddle.jit.to_static(lambda x: x, build_strategy=3)
    with pytest.raises(ValueError):
        paddle.jit.to_static(lambda x: x, input_spec=[InputSpec([1]), InputSpec([1])])(tensor(1))


def test_translator():
    def f(x):
        return x * 2
    translator = paddle.jit.ProgramTranslator.get_instance()
    assert translator is paddle.jit.ProgramTranslator()
    assert translator.get_output(f, tensor(2)).shape == [2]
    assert "def f" in translator.get_code(f)
    main, startup, inputs, outputs = translator.get_program(f, tensor(2))
    assert main.num_blocks == 1 and len(inputs) == len(outputs) == 1
    assert translator.get_func(f)(3) == 6
    kept = paddle.jit.to_static(f)
    kept(tensor(2))
    assert any(name.endswith("f") for name in translator.get_program_cache())


def test_static_cond_inside():
    @paddle.jit.to_static
    def f(x):
        return paddle.static.nn.cond(x.sum() > 0, lambda: x + 1, lambda: x - 1)
    for seed in range(4):
        x = tensor(3, seed=seed)
        assert np.array_equal(f(x).numpy(), (x + 1 if x.sum() > 0 else x - 1).numpy())


def test_hooks_run():
    net = nn.Linear(2, 2)
    seen = []
    net.register_forward_pre_hook(lambda layer, inputs: seen.append("before") or (inputs[0] * 2,))
    net.register_forward_post_hook(lambda layer, inputs, out: out + 1)
    x = tensor(1, 2)
    expected = net(x).numpy()
    assert np.array_equal(paddle.jit.to_static(net)(x).numpy(), expected)


def test_prints_in_each_run(capsys):
    @paddle.jit.to_static
    def f(x):
        print("sum:", x.sum(), end="!\n")
        print("captured")
        return x * 2
    for n in (1, 2):
        f(paddle.full([2], float(n)))
        said = capsys.readouterr().out
        assert "sum: Tensor(shape=[], dtype=float32" in said and f"{2.0 * n:g}" in said and said.endswith("!\n")
        assert ("captured" in said) == (n == 1)


def test_asserts_in_each_run():
    @paddle.jit.to_static
    def f(x):
        assert x.sum() > 0, "must be positive"
        return x * 2
    assert f(paddle.ones([2])).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="must be positive"):
        f(-paddle.ones([2]))
    assert f(paddle.ones([2])).tolist() == [2, 2]

    @paddle.jit.to_static(full_graph=True)
    def g(x):
        if x.sum() > 0:
            assert x.max() > 1
        return x
    with pytest.raises(ConversionError, match="assert on a tensor inside a branch"):
        g(paddle.ones([2]))


def test_in_a_hapi_model():
    net = paddle.jit.to_static(nn.Linear(4, 2))
    model = paddle.Model(net, inputs=[InputSpec([None, 4], name="x")], labels=[InputSpec([None], "int64", "label")])
    model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), nn.CrossEntropyLoss())
    first, *_ = [model.train_batch([np.ones([3, 4], "float32")], [np.array([0, 1, 1])])[0] for _ in range(5)]
    last = model.eval_batch([np.ones([3, 4], "float32")], [np.array([0, 1, 1])])[0]
    assert float(np.ravel(last)[0]) < float(np.ravel(first)[0])


def test_static_control_flow_inside():
    @paddle.jit.to_static
    def f(x):
        n, x = paddle.static.nn.while_loop(lambda n, x: n < 3, lambda n, x: [n + 1, x * 2],
                                           [paddle.zeros([], "int64"), x])
        y = paddle.static.nn.case([(x.sum() > 10, lambda: x + 1)], default=lambda: x - 1)
        return paddle.static.nn.switch_case(n, {3: lambda: y * 2, 4: lambda: y * 3})
    assert f(paddle.full([2], 1.0)).tolist() == [18, 18]
    assert f(paddle.full([2], 0.5)).tolist() == [6, 6]


class KeepsWhatCame(nn.Layer):
    """As detection models do: forward leaves its feeds, and what it found, in attributes."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.inputs, self.notes, self.steps = {}, {"kind": "mean"}, None

    def forward(self, inputs):
        self.inputs = inputs
        self.found = [self.fc(inputs["x"])]
        self.steps = (inputs["x"] * 2, {"sum": self.inputs["x"].sum(), "kind": "mean"})
        self.notes["scaled"] = self.found[-1] * self.inputs["scale"]
        return self.notes["scaled"] + 1


def kept(static):
    net = KeepsWhatCame()
    net.fc.weight.set_value(np.linspace(-1, 1, 6, dtype="float32").reshape(3, 2))
    run = paddle.jit.to_static(net) if static else net
    notes, seen = net.notes, []
    for i in range(2):
        x = paddle.full([2, 3], 1.0 + i)
        result = run({"x": x, "scale": paddle.to_tensor([2.0 + i])})
        (result.sum() + net.found[0].sum()).backward()
        seen += [result.detach(), net.inputs["x"], net.inputs["scale"], *net.found, net.steps[0], net.steps[1]["sum"],
                 net.notes["scaled"]]
        assert net.notes is notes and net.steps[1]["kind"] == net.notes["kind"] == "mean"
    return [one.numpy() for one in seen] + [net.fc.weight.grad.numpy()]


def test_containers_of_tensors_stay_in_attributes(tmp_path):
    eager, static = kept(False), kept(True)
    assert len(eager) == len(static) and all(map(np.array_equal, static, eager))
    net = KeepsWhatCame()
    spec = paddle.static.InputSpec
    net.forward = paddle.jit.to_static(net.forward, input_spec=[{"x": spec([None, 3]), "scale": spec([1])}])
    paddle.jit.save(net, str(tmp_path / "m"))
    assert net.inputs == {} and net.notes == {"kind": "mean"} and net.steps is None and not hasattr(net, "found")
    x, scale = paddle.ones([4, 3]), paddle.to_tensor([2.0])
    loaded = paddle.jit.load(str(tmp_path / "m"))(scale, x)
    assert np.array_equal(loaded.numpy(), (net.fc(x) * scale + 1).numpy())


def test_values_set_inside_are_written_by_every_call():
    """Buffers that a hook sets to what it computed (spectral_norm's vectors), as eagerly."""
    def outputs(static):
        paddle.seed(3)
        net = nn.utils.spectral_norm(nn.Linear(4, 3))
        run = paddle.jit.to_static(lambda x: net(x)) if static else net
        seen = []
        for i in range(3):
            y = run(tensor(2, 4, seed=i))
            y.sum().backward()
            seen += [y.detach(), net.weight_u, net.weight_v]
        return [one.numpy() for one in [*seen, net.weight_orig.grad]]
    for have, want in zip(outputs(True), outputs(False)):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
