"""Exported models on gpu:0 (emulated, unless PROA_GPU says that there is one): jit.load and the predictor bring the weights there
once, and runs give what the CPU's give."""
import numpy as np
import pytest

import proa as paddle
from proa import _core, inference, nn

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.fixture(autouse=True)
def cpu_again():
    yield
    paddle.set_device("cpu")


def network():
    return nn.Sequential(nn.Conv2D(3, 4, 3, padding=1), nn.BatchNorm2D(4), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(64, 5))


@pytest.fixture
def saved(tmp_path):
    """Its path, an input and what the model makes of it."""
    paddle.set_device("cpu")
    net, path = network(), str(tmp_path / "net")
    x = np.random.RandomState(0).rand(2, 3, 8, 8).astype("float32")
    net(paddle.to_tensor(x))  # moves the running statistics
    net.eval()
    paddle.jit.save(net, path, [paddle.static.InputSpec([None, 3, 8, 8])])
    return path, x, net(paddle.to_tensor(x)).numpy()


def places(layer):
    return {str(t.place) for t in list(layer.parameters()) + list(layer.buffers())}


def test_load_follows_set_device(saved):
    path, x, want = saved
    paddle.set_device("gpu:0")
    net = paddle.jit.load(path)
    assert places(net) == {"Place(gpu:0)"}
    got = net(paddle.to_tensor(x))
    assert str(got.place) == "Place(gpu:0)"
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


def test_a_loaded_layer_moves(saved):
    path, x, want = saved
    net = paddle.jit.load(path)
    assert places(net) == {"Place(cpu)"}
    np.testing.assert_allclose(net(paddle.to_tensor(x)).numpy(), want, rtol=1e-5, atol=1e-6)
    for device in "gpu:0", "cpu", "gpu:0":
        assert net.to(device) is net and places(net) == {f"Place({device})"}
        paddle.set_device(device)
        np.testing.assert_allclose(net(paddle.to_tensor(x)).numpy(), want, rtol=1e-5, atol=1e-6)


def test_a_moved_layer_keeps_what_its_parameters_are():
    net = nn.Linear(2, 3)
    net.bias.stop_gradient = True
    names = [p.name for p in net.parameters()]
    for device in "gpu:0", "gpu:0", "cpu":
        net.to(device)
        assert [p.stop_gradient for p in net.parameters()] == [False, True]
        assert [p.name for p in net.parameters()] == names


def test_a_loaded_layer_trains(saved):
    path, x, _ = saved

    def trained(device):
        paddle.set_device(device)
        net = paddle.jit.load(path)
        net.train()
        opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        for _ in range(3):
            loss = (net(paddle.to_tensor(x)) ** 2).mean()
            loss.backward()
            opt.step()
            opt.clear_grad()
        return float(loss)
    np.testing.assert_allclose(trained("gpu:0"), trained("cpu"), rtol=1e-4)


def test_predictor(saved):
    path, x, want = saved
    config = inference.Config(path + ".pdmodel", path + ".pdiparams")
    config.enable_use_gpu(200, 0)
    assert (config.use_gpu(), config.gpu_device_id(), config.memory_pool_init_size_mb()) == (True, 0, 200)
    predictor = inference.create_predictor(config)
    handle, out = predictor.get_input_handle(predictor.get_input_names()[0]), predictor.get_output_names()[0]
    for _ in range(2):
        handle.copy_from_cpu(x)
        predictor.run()
        np.testing.assert_allclose(predictor.get_output_handle(out).copy_to_cpu(), want, rtol=1e-5, atol=1e-6)
    twin = predictor.clone()
    got, = twin.run([paddle.to_tensor(x)])
    assert str(got.place) == "Place(gpu:0)"
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


def test_a_steady_run_neither_waits_nor_takes_memory(saved):
    path, x, _ = saved
    config = inference.Config(path + ".pdmodel", path + ".pdiparams")
    config.enable_use_gpu()
    predictor = inference.create_predictor(config)
    x = paddle.to_tensor(x, place="gpu:0")

    def counters():
        return [_core.device_property("gpu:0", name) for name in ("waits", "driver_allocations", "launches")]
    for _ in range(4):
        result = predictor.run([x])
        before = counters()
    result = predictor.run([x])
    assert counters() == before and result  # a recording is replayed: nothing is launched by itself


def test_constants_are_folded_beside_the_weights(tmp_path):
    """The weights' device decides, whatever device the thread has chosen while the predictor is made."""
    class Positions(nn.Layer):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(6, 4)

        def forward(self, x):
            return x + self.table(paddle.arange(6))
    net, path, x = Positions(), str(tmp_path / "net"), np.ones((2, 6, 4), "float32")
    net.eval()
    want = net(paddle.to_tensor(x)).numpy()
    paddle.jit.save(net, path, [paddle.static.InputSpec([None, 6, 4])])
    for chosen in "cpu", "gpu:0":
        paddle.set_device(chosen)
        for gpu in False, True:
            config = inference.Config(path + ".pdmodel", path + ".pdiparams")
            if gpu:
                config.enable_use_gpu()
            predictor = inference.create_predictor(config)
            assert paddle.get_device() == chosen
            got, = predictor.run([paddle.to_tensor(x)])
            assert str(got.place) == ("Place(gpu:0)" if gpu else "Place(cpu)")
            np.testing.assert_array_equal(got.numpy(), want)


def test_settings_of_a_gpu(saved):
    config = inference.Config(saved[0])
    with pytest.raises(RuntimeError):
        config.enable_use_gpu(100, 77)
    with pytest.raises(ValueError, match="precision"):
        config.enable_use_gpu(100, 0, inference.PrecisionType.Half)
    assert not config.use_gpu()
    config.enable_use_gpu()
    assert "| use_gpu" in config.summary() and "true" in config.summary()
    config.disable_gpu()
    assert not config.use_gpu()
