"""Channels-last memory on gpu:0 (emulated, unless PROA_GPU says that there is one): convolutions make it, what follows keeps it,
everything else reads it as if it lay plainly, and a steady training step copies between layouts at its edges only.
"""
import os

import numpy as np
import pytest

import matrix
import proa as paddle
import test_devices
from proa import _core, nn
from test_device_training import ResNet18
from test_devices import DIFFERENTIABLE, RUNNABLE, each

pytestmark = pytest.mark.usefixtures("gpu")
IMAGES = (4, 5)


def copies():
    return _core.device_property("gpu:0", "strided_copies")


def channels_last(x):
    """x, of four or five dims, in new memory, stored channels last."""
    if len(x.shape) not in IMAGES or 0 in x.shape or x.shape[1] == 1 or "complex" in str(x.dtype):
        return x
    with paddle.no_grad():
        eye = np.eye(x.shape[1], dtype="float32").reshape([x.shape[1]] * 2 + [1] * (len(x.shape) - 2))
        eye = _core.to_device(_core.from_numpy(eye), "gpu:0")
        one = _core.to_device(_core.from_numpy(np.ones(x.shape, "float32")), "gpu:0")
        flag = _core.get_flag("allow_tf32")
        _core.set_flag("allow_tf32", "1")
        one = (_core.conv2d if len(x.shape) == 4 else _core.conv3d)(one, eye)
        _core.set_flag("allow_tf32", flag)
        wide = "float32" if str(x.dtype).endswith("bool") else x.dtype
        return _core.cast(_core.multiply(_core.cast(x, wide), _core.cast(one, wide)), x.dtype)


def is_channels_last(x):
    """Whether reading it needs a copy."""
    before = copies()
    x.numpy()
    return copies() > before


def brought(values):
    """Brings values to the GPU, stored channels last."""
    if isinstance(values, dict):
        return {k: brought(v) for k, v in values.items()}
    if isinstance(values, list):
        return [brought(v) for v in values]
    if not isinstance(values, _core.Tensor) or str(values.place) == "Place(gpu:0)":
        return values
    return channels_last(_core.to_device(values, "gpu:0"))


@pytest.fixture
def all_channels_last(monkeypatch):
    plainly = test_devices.moved
    monkeypatch.setattr(test_devices, "moved", lambda values, name: brought(values) if name == "gpu:0" else plainly(values, name))


def of_images(ops):
    """Those with a sample of four or five dims."""
    def dims(spec):
        shape = spec if isinstance(spec, list) else spec.get("shape", []) if isinstance(spec, dict) else []
        return len(shape)
    return [op for op in ops if any(dims(spec) in IMAGES for sample in op["samples"] for spec in matrix.sample_specs(op, sample))]


def test_which_are_channels_last():
    x = np.arange(2 * 3 * 4 * 5, dtype="float32").reshape(2, 3, 4, 5)
    for dtype in "float32", "float16", "int64", "bool":
        t = _core.to_device(_core.cast(_core.from_numpy(x), dtype), "gpu:0")
        assert not is_channels_last(t)
        assert is_channels_last(channels_last(t))
        np.testing.assert_array_equal(channels_last(t).numpy(), t.numpy())


@each(of_images(RUNNABLE))
def test_forward(op, all_channels_last):
    test_devices.check(op, "gpu:0", test_devices.forward)


@each(of_images(DIFFERENTIABLE))
def test_gradient(op, all_channels_last):
    test_devices.check(op, "gpu:0", test_devices.gradients)


@each([op for op in of_images(RUNNABLE) if "RANDOM" not in op["flags"]])
def test_captured(op, all_channels_last):
    test_devices.check(op, "gpu:0", test_devices.captured)


# ---- what a handle shows -----------------------------------------------------------------------------------------------


def fresh():
    values = np.random.RandomState(2).standard_normal((2, 3, 4, 5)).astype("float32")
    return values, channels_last(_core.to_device(_core.from_numpy(values), "gpu:0"))


def test_reading():
    values, x = fresh()
    assert x.is_contiguous() and list(x.strides) == [60, 20, 5, 1]
    for got, want in [(x[1, 2], values[1, 2]), (x.transpose([0, 2, 3, 1]), values.transpose(0, 2, 3, 1)),
                      (x.reshape([2, -1]), values.reshape(2, -1)), (x.sum([2, 3]), values.sum((2, 3))),
                      (x[:, 1:], values[:, 1:]), (x.cpu(), values), (x.clone(), values), (x.flatten(), values.ravel())]:
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    assert repr(x.cpu()) == repr(paddle.to_tensor(values, place="cpu"))
    np.testing.assert_array_equal(paddle.to_tensor(np.from_dlpack(x.cpu())).numpy(), values)


def test_writing():
    values, x = fresh()
    part = x[0]  # a view knows of what is written to the whole, and the other way round
    x.add_(paddle.ones_like(x))
    np.testing.assert_array_equal(x.numpy(), values + 1)
    np.testing.assert_array_equal(part.numpy(), values[0] + 1)
    part.zero_()
    assert not x.numpy()[0].any() and x.numpy()[1].any()
    values, x = fresh()
    x.set_value(values * 2)
    np.testing.assert_array_equal(x.numpy(), values * 2)
    values, x = fresh()
    x[:, 0] = 7.0
    values[:, 0] = 7
    np.testing.assert_array_equal(x.numpy(), values)


# ---- training ------------------------------------------------------------------------------------------------------------


def losses(level, dtype, compiled=False, blocked=True, optimizer="Momentum", clip=None, device="gpu:0"):
    """Losses and strided copies of each step."""
    paddle.set_device(device)
    paddle.set_flags({"FLAGS_blocked": blocked})
    paddle.seed(1)
    rng = np.random.RandomState(0)
    net = ResNet18(4)
    for p in net.parameters():
        if len(p.shape) > 1:
            p.set_value((rng.standard_normal(p.shape) / np.prod(p.shape[1:]) ** 0.5).astype("float32"))
    opt = getattr(paddle.optimizer, optimizer)(1e-4, parameters=net.parameters(), multi_precision=level == "O2",
                                               grad_clip=clip and paddle.nn.ClipGradByGlobalNorm(clip))
    if level == "O2":
        net, opt = paddle.amp.decorate(net, opt, level="O2", dtype=dtype)
    call = paddle.jit.to_static(net) if compiled else net
    scaler = paddle.amp.GradScaler(enable=dtype == "float16", init_loss_scaling=128.0)
    x = paddle.to_tensor(rng.rand(4, 3, 40, 40).astype("float32"))
    y = paddle.to_tensor(rng.randint(0, 10, (4,)))
    found, counts = [], []
    for _ in range(4):
        before = copies() if device != "cpu" else 0
        with paddle.amp.auto_cast(level=level, dtype=dtype):
            loss = nn.functional.cross_entropy(call(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.clear_grad()
        counts.append(copies() - before if device != "cpu" else 0)
        found.append(float(loss))
    paddle.set_flags({"FLAGS_blocked": True})
    return found, counts


# The images, for the first convolution and for its filter's gradient.
EDGES = 2
# cuDNN has other algorithms for channels last, which add up halves in another order; its stand-in has one for both.
LAYOUTS_DIFFER = 2e-2 if os.environ.get("PROA_GPU") else 2e-3


@pytest.mark.parametrize("level,dtype,compiled,optimizer,clip",
                         [("O2", "float16", False, "Momentum", None), ("O2", "bfloat16", False, "AdamW", 1.0),
                          ("O1", "float16", False, "AdamW", 1.0), ("O2", "float16", True, "Momentum", None),
                          ("O1", "bfloat16", True, "Lamb", None)])
def test_a_steady_step_copies_at_its_edges_only(level, dtype, compiled, optimizer, clip):
    with_layout, counts = losses(level, dtype, compiled, optimizer=optimizer, clip=clip)
    plainly, none = losses(level, dtype, compiled, blocked=False, optimizer=optimizer, clip=clip)
    np.testing.assert_allclose(with_layout[0], plainly[0], rtol=2e-3)
    np.testing.assert_allclose(with_layout, plainly, rtol=LAYOUTS_DIFFER)
    assert counts[0] > EDGES and counts[-1] <= EDGES, counts  # at first, the filters
    cpu, _ = losses(level, dtype, compiled, optimizer=optimizer, clip=clip, device="cpu")
    np.testing.assert_allclose(with_layout, cpu, rtol=2e-2)


def test_float32_is_channels_last_where_tf32_is_allowed():
    x = paddle.to_tensor(np.ones((1, 2, 4, 4), "float32"), place="gpu:0")
    conv = nn.Conv2D(2, 3, 3).to("gpu:0")
    assert not is_channels_last(conv(x))
    paddle.set_flags({"FLAGS_allow_tf32": True})
    try:
        assert is_channels_last(conv(x))
    finally:
        paddle.set_flags({"FLAGS_allow_tf32": False})


def test_a_saved_state_is_plain():
    """Filters that the optimizer has stored so are saved and loaded as any."""
    paddle.set_device("gpu:0")
    net = nn.Conv2D(3, 4, 3)
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    net, opt = paddle.amp.decorate(net, opt, level="O2", dtype="float16")
    with paddle.amp.auto_cast(level="O2"):
        net(paddle.ones([1, 3, 5, 5])).sum().backward()
    opt.step()
    before = net.weight.numpy()
    other = nn.Conv2D(3, 4, 3).astype("float16")
    other.set_state_dict(net.state_dict())
    np.testing.assert_array_equal(other.weight.numpy(), before)
