"""jit.save, jit.load and TracedLayer on their own."""
import os
import pickle

import numpy as np
import pytest

import proa as paddle
from proa.static import InputSpec

nn = paddle.nn


def tensor(*shape, seed=0):
    return paddle.to_tensor(np.random.RandomState(seed).standard_normal(shape).astype("float32"))


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1D(8)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(8, 2)

    def forward(self, x, y=None):
        z = self.drop(self.bn(self.fc(x)))
        if y is not None:
            z = z + y
        return {"logits": self.out(z), "hidden": z}

    @paddle.jit.to_static(input_spec=[InputSpec([None, 4], name="q")])
    def embed(self, x):
        return self.fc(x)


@pytest.fixture
def prefix(tmp_path):
    return str(tmp_path / "deep" / "net")


def test_methods_and_modes(prefix):
    net = Net()
    net.forward = paddle.jit.to_static(net.forward, input_spec=[InputSpec([None, 4], name="x")])
    net.train()
    paddle.jit.save(net, prefix)
    assert net.training
    files = sorted(os.listdir(os.path.dirname(prefix)))
    assert files == ["net.embed.pdiparams", "net.embed.pdmodel", "net.pdiparams", "net.pdiparams.info", "net.pdmodel"]
    with open(prefix + ".pdiparams.info", "rb") as file:
        info = pickle.load(file)
    assert info[net.fc.weight.name] == {"structured_name": "fc.weight", "stop_gradient": False, "trainable": True}
    assert {entry["structured_name"] for entry in info.values()} == set(net.state_dict())

    loaded = paddle.jit.load(prefix)
    net.eval()
    for n in (1, 5):
        x = tensor(n, 4)
        hidden, logits = loaded(x)  # a dict's, by key
        expected = net(x)
        assert np.array_equal(logits.numpy(), expected["logits"].numpy())
        assert np.array_equal(hidden.numpy(), expected["hidden"].numpy())
        assert np.array_equal(loaded.embed(x).numpy(), net.embed(x).numpy())
    assert not loaded.training and loaded(x)[1].stop_gradient
    assert [spec.name for spec in loaded._input_spec()] == ["x"]
    assert loaded.program().num_blocks == 1
    assert len(loaded.program("embed").all_parameters()) == 2
    with pytest.raises(ValueError, match="no method"):
        loaded.program("nothing")


def test_fine_tuning(prefix):
    net = Net()
    net.forward = paddle.jit.to_static(net.forward, input_spec=[InputSpec([None, 4])])
    paddle.jit.save(net, prefix)
    loaded = paddle.jit.load(prefix)
    loaded.train()
    x = tensor(16, 4)
    assert not np.array_equal(loaded(x)[1].numpy(), loaded(x)[1].numpy())  # dropout is back
    mean = {name: value.numpy() for name, value in loaded.state_dict().items() if name.startswith("param")}
    optimizer = paddle.optimizer.Adam(0.01, parameters=loaded.parameters())
    losses = []
    for _ in range(30):
        loss = (loaded(x)[1] ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert losses[-1] < losses[0]
    changed = [name for name, value in loaded.state_dict().items()
               if name in mean and not np.array_equal(value.numpy(), mean[name])]
    assert len(changed) == len(mean)  # running statistics, too
    loaded.eval()
    again = prefix + "_again"
    paddle.jit.save(loaded, again, input_spec=[InputSpec([None, 4])])
    third = paddle.jit.load(again)
    assert np.array_equal(third(x)[1].numpy(), loaded(x)[1].numpy())


def test_layer_with_input_spec(prefix):
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    paddle.jit.save(net, prefix, input_spec=[tensor(2, 3)])
    loaded = paddle.jit.load(prefix)
    assert np.array_equal(loaded(tensor(2, 3)).numpy(), net(tensor(2, 3)).numpy())
    state = paddle.load(prefix)
    assert sorted(state) == ["0.bias", "0.weight"]
    net.set_state_dict(state)


def test_functions(prefix):
    weight = tensor(3, 3, seed=4)

    @paddle.jit.to_static
    def f(x):
        if x.sum() > 0:
            return paddle.matmul(x, weight)
        return x - 1

    def plain(x, y):
        return x + y, x * 2
    paddle.jit.save(plain, prefix, input_spec=[InputSpec([None, 3], name="a"), InputSpec([None, 3], name="b")])
    assert not os.path.exists(prefix + ".pdiparams.info")
    loaded = paddle.jit.load(prefix)
    a, b = tensor(2, 3), tensor(2, 3, seed=1)
    assert np.array_equal(loaded(a, b)[0].numpy(), (a + b).numpy())
    with pytest.raises(ValueError, match="takes 2 inputs"):
        loaded(a)
    with pytest.raises(ValueError, match="needs input_spec"):
        paddle.jit.save(f, prefix)


def test_control_flow(prefix):
    net = nn.Linear(3, 3)

    class Loops(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = net

        def forward(self, x, n):
            for i in range(n):
                if x.sum() > 10:
                    break
                x = x + self.fc(x).abs()
            print("left out of files:", x)
            return x
    layer = Loops()
    paddle.jit.save(layer, prefix, input_spec=[InputSpec([None, 3]), InputSpec([], "int64")])
    loaded = paddle.jit.load(prefix)
    for n in (0, 1, 9):
        x = tensor(2, 3, seed=n)
        count = paddle.to_tensor(n)
        assert np.array_equal(loaded(x, count).numpy(), layer(x, count).numpy())


def test_output_spec(prefix):
    class Two(nn.Layer):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            return self.a(x), self.b(x)
    net = Two()
    net.forward = paddle.jit.to_static(net.forward, input_spec=[InputSpec([None, 2])])
    second = net.forward.outputs[1]
    paddle.jit.save(net, prefix, output_spec=[second])
    loaded = paddle.jit.load(prefix)
    x = tensor(1, 2)
    assert np.array_equal(loaded(x).numpy(), net.b(x).numpy())
    assert len(loaded.parameters()) == 2
    with pytest.raises(ValueError, match="output_spec"):
        paddle.jit.save(net, prefix, output_spec=[tensor(1)])


def test_hooks_are_saved(prefix):
    net = nn.Linear(2, 2)
    net.register_forward_post_hook(lambda layer, inputs, out: out * 3)
    paddle.jit.save(net, prefix, input_spec=[InputSpec([None, 2])])
    x = tensor(1, 2)
    assert np.array_equal(paddle.jit.load(prefix)(x).numpy(), net(x).numpy())


def test_refusals(prefix):
    net = nn.Linear(2, 2)
    for call, error in ((lambda: paddle.jit.save(net, prefix), ValueError),
                        (lambda: paddle.jit.save(3, prefix), TypeError),
                        (lambda: paddle.jit.save(net, os.path.dirname(prefix) + "/"), ValueError),
                        (lambda: paddle.jit.save(net, prefix, input_spec=3), TypeError),
                        (lambda: paddle.jit.save(net, prefix, [InputSpec([2, 2])], color=1), ValueError),
                        (lambda: paddle.jit.load(prefix + "_none"), ValueError),
                        (lambda: paddle.jit.TranslatedLayer(3, {}), TypeError)):
        with pytest.raises(error):
            call()
    paddle.jit.enable_to_static(False)
    try:
        with pytest.raises(RuntimeError):
            paddle.jit.save(net, prefix, [InputSpec([2, 2])])
    finally:
        paddle.jit.enable_to_static(True)


def test_traced_layer(prefix):
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    net.eval()
    x = tensor(2, 3)
    outs, traced = paddle.jit.TracedLayer.trace(net, [x])
    assert np.array_equal(traced([x])[0], outs.numpy())
    with pytest.raises(RuntimeError):
        traced.set_strategy()
    traced.save_inference_model(prefix, feed=[0], fetch=[0])
    assert np.array_equal(paddle.jit.load(prefix)(x).numpy(), outs.numpy())
    with pytest.raises(TypeError):
        paddle.jit.TracedLayer.trace(net, [3])
    with pytest.raises(ValueError):
        traced.save_inference_model(prefix, fetch=[4])
    assert traced.program.num_blocks == 1


def test_hapi_model_saves_for_inference(prefix):
    model = paddle.Model(nn.Linear(3, 2), inputs=[InputSpec([None, 3], name="x")])
    model.save(prefix, training=False)
    x = tensor(4, 3)
    assert np.array_equal(paddle.jit.load(prefix)(x).numpy(), model.network(x).numpy())


def test_an_adversarial_info_file(prefix):
    paddle.jit.save(nn.Linear(2, 2), prefix, input_spec=[InputSpec([None, 2])])
    with open(prefix + ".pdiparams.info", "wb") as file:
        file.write(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ValueError, match="cannot be read"):
        paddle.jit.load(prefix)


def test_input_spec_of_save_comes_first(prefix):
    net = nn.Linear(3, 2)
    net.forward = paddle.jit.to_static(net.forward, input_spec=[InputSpec([2, 3], name="x")])
    paddle.jit.save(net, prefix, input_spec=[InputSpec([None, 3], name="y")])
    loaded = paddle.jit.load(prefix)
    assert [spec.name for spec in loaded._input_spec()] == ["y"] and loaded(tensor(7, 3)).shape == [7, 2]


def test_values_among_the_specs(prefix):
    class Scaled(nn.Layer):
        def forward(self, x, factor, shift=1.0):
            return x * factor + shift
    paddle.jit.save(Scaled(), prefix, input_spec=[InputSpec([None]), 3.0])
    assert paddle.jit.load(prefix)(paddle.ones([2])).tolist() == [4, 4]


def test_an_attribute_of_none_is_there_after_a_trace(prefix):
    class Stream(nn.Layer):
        def __init__(self):
            super().__init__()
            self.kept = None

        def forward(self, x):
            total = x if self.kept is None else x + self.kept
            self.kept = total * 2
            return total
    layer = Stream()
    paddle.jit.save(layer, prefix, input_spec=[InputSpec([2])])
    assert layer.kept is None
    assert layer.forward(paddle.ones([2])).tolist() == paddle.jit.load(prefix)(paddle.ones([2])).tolist() == [1, 1]
