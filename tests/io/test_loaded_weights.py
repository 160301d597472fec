"""A loaded model's weights are read when they are first used; whatever happens to its file meanwhile is harmless or an
OSError."""
import os
import threading

import numpy as np
import proa as paddle
import pytest

SIDE = 256      # 256 KiB a weight


@pytest.fixture
def model(tmp_path):
    """(prefix, input, what the model computes); the file was written long ago"""
    net = paddle.nn.Sequential(paddle.nn.Linear(SIDE, SIDE), paddle.nn.ReLU(), paddle.nn.Linear(SIDE, SIDE))
    net.eval()
    path = str(tmp_path / "model")
    paddle.jit.save(net, path, [paddle.static.InputSpec([None, SIDE], "float32", "x")])
    os.utime(path + ".pdiparams", (10 ** 9, 10 ** 9))
    x = paddle.rand([2, SIDE])
    return path, x, net(x).numpy()


def truncate(path):
    open(path, "wb").close()


def change(path):
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\7" * 100000)


@pytest.mark.parametrize("spoil", [truncate, change])
def test_a_file_written_to_before_the_first_use_is_an_error(model, spoil):
    path, x, _ = model
    loaded = paddle.jit.load(path)
    spoil(path + ".pdiparams")
    for _ in range(2):
        with pytest.raises(OSError, match="was written to while a model was being read from it: load the model again"):
            loaded(x)
    with pytest.raises(OSError, match="was written to"):
        [p.numpy() for p in loaded.parameters()]


@pytest.mark.parametrize("spoil", [truncate, change])
def test_a_file_written_to_after_the_first_use_is_harmless(model, spoil):
    path, x, expected = model
    loaded = paddle.jit.load(path)
    assert np.array_equal(loaded(x).numpy(), expected)
    spoil(path + ".pdiparams")
    assert np.array_equal(loaded(x).numpy(), expected)
    assert all(np.isfinite(p.numpy()).all() for p in loaded.parameters())


@pytest.mark.parametrize("spoil", [truncate, change])
def test_a_file_written_just_now_is_read_at_once(model, spoil):
    """The clock of file systems steps: a second write could be missed."""
    path, x, expected = model
    os.utime(path + ".pdiparams")
    loaded = paddle.jit.load(path)
    spoil(path + ".pdiparams")
    assert np.array_equal(loaded(x).numpy(), expected)


def test_a_replaced_or_removed_file_leaves_the_old_weights(model):
    path, x, expected = model
    loaded, second = paddle.jit.load(path), paddle.jit.load(path)
    other = paddle.nn.Sequential(paddle.nn.Linear(SIDE, SIDE), paddle.nn.ReLU(), paddle.nn.Linear(SIDE, SIDE))
    paddle.jit.save(other, path, [paddle.static.InputSpec([None, SIDE], "float32", "x")])
    assert np.array_equal(loaded(x).numpy(), expected)
    os.remove(path + ".pdiparams")
    assert np.array_equal(second(x).numpy(), expected)


def test_several_threads_may_be_the_first(model):
    path, x, expected = model
    loaded, results = paddle.jit.load(path), []
    threads = [threading.Thread(target=lambda: results.append([p.numpy() for p in loaded.parameters()])) for _ in range(4)]
    for one in threads:
        one.start()
    results.append([p.numpy() for p in loaded.parameters()])
    for one in threads:
        one.join()
    assert all(np.array_equal(a, b) for result in results for a, b in zip(result, results[0]))
    assert np.array_equal(loaded(x).numpy(), expected)


def test_weights_not_read_yet_are_tensors_like_others(model):
    path, x, expected = model
    whole = {name: p.numpy() for name, p in paddle.jit.load(path).state_dict().items()}

    def fresh():
        return paddle.jit.load(path)
    for use in (lambda w: w + 0, lambda w: w.clone(), lambda w: w[:], lambda w: w.reshape([-1]).reshape(w.shape),
                lambda w: paddle.to_tensor(w), lambda w: paddle.concat([w, w])[:w.shape[0]], lambda w: w.t().t(),
                lambda w: paddle.to_tensor(w.tolist()), lambda w: w.astype("float64").astype("float32")):
        for name, w in fresh().state_dict().items():
            assert np.array_equal(use(w).numpy(), whole[name])
    trained = fresh()
    trained.train()
    opt = paddle.optimizer.SGD(0.1, parameters=trained.parameters())
    trained(x).sum().backward()
    opt.step()
    assert not np.array_equal(trained.parameters()[0].numpy(), whole["param_0"])
    replaced = fresh()
    for p in replaced.parameters():
        p.set_value(paddle.zeros(p.shape))
    assert not replaced(x).numpy().any()
    paddle.jit.save(fresh(), path + "2", [paddle.static.InputSpec([None, SIDE], "float32", "x")])
    assert np.array_equal(paddle.jit.load(path + "2")(x).numpy(), expected)


def test_weights_can_be_mapped(model):
    path, x, expected = model
    paddle.set_flags({"FLAGS_map_parameters": 1})
    try:
        loaded = paddle.jit.load(path)
        assert path + ".pdiparams" in open("/proc/self/maps").read()
    finally:
        paddle.set_flags({"FLAGS_map_parameters": 0})
    assert np.array_equal(loaded(x).numpy(), expected)


def test_a_file_is_closed_when_its_weights_are_there(model):
    path, x, _ = model

    def is_open():
        names = []
        for fd in os.listdir("/proc/self/fd"):
            try:
                names.append(os.readlink(f"/proc/self/fd/{fd}"))
            except FileNotFoundError:       # the one of the listing
                pass
        return path + ".pdiparams" in names
    loaded = paddle.jit.load(path)
    assert is_open()
    [p.numpy() for p in loaded.parameters()]
    assert not is_open()
