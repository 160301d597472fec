"""Blocked layouts never show: whatever is done to tensors that lie blocked gives what plain ones give, and
FLAGS_blocked=0 keeps all plain."""
import gc
import io
import threading

import numpy as np
import pytest

import proa as paddle
import proa.nn.functional as F
from proa import nn


@pytest.fixture(autouse=True)
def flag():
    yield
    paddle.set_flags({"FLAGS_blocked": 1})


def both(fn):
    """The results of fn() with blocked layouts and without."""
    results = []
    for on in (1, 0):
        paddle.set_flags({"FLAGS_blocked": on})
        paddle.seed(7)
        results.append(fn())
    return results


def same(fn, tolerance=2e-5):
    blocked, plain = both(fn)
    assert len(blocked) == len(plain)
    for a, b in zip(blocked, plain):
        assert a.shape == b.shape and a.dtype == b.dtype
        scale = max(1.0, float(np.abs(b.astype("float64")).max())) if b.size else 1.0
        np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), rtol=0, atol=tolerance * scale)


def image(*shape, seed=0):
    x = paddle.to_tensor(np.random.RandomState(seed).randn(*shape).astype("float32"))
    x.stop_gradient = False
    return x


def run(layer, x, train=True):
    layer.train() if train else layer.eval()
    y = layer(x)
    (y * y * 0.5 + y).sum().backward()
    parameters = [p for p in layer.parameters() if p.grad is not None]
    return [y.numpy(), x.grad.numpy()] + [p.grad.numpy() for p in parameters] + \
        [b.numpy() for b in layer.buffers()]


ACTIVATIONS = [nn.ReLU, nn.ReLU6, nn.Hardswish, nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.GELU, nn.Silu, nn.Softplus,
               nn.Mish]
POOLS = [lambda: nn.MaxPool2D(2), lambda: nn.MaxPool2D(3, 2, 1), lambda: nn.AvgPool2D(3, 2, 1),
         lambda: nn.AvgPool2D(2, exclusive=False), lambda: nn.AdaptiveAvgPool2D(1), lambda: nn.AdaptiveAvgPool2D(3),
         lambda: nn.AdaptiveMaxPool2D(2), lambda: nn.MaxPool2D(2, ceil_mode=True)]


@pytest.mark.parametrize("channels", [16, 20, 24, 32, 48])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(channels, activation):
    same(lambda: run(nn.Sequential(nn.Conv2D(3, channels, 3, padding=1, bias_attr=False),
                                   nn.BatchNorm2D(channels), activation(), nn.Conv2D(channels, 16, 3)),
                     image(2, 3, 9, 11)))


@pytest.mark.parametrize("channels", [16, 24, 32])
@pytest.mark.parametrize("pool", range(len(POOLS)))
def test_pools(channels, pool):
    same(lambda: run(nn.Sequential(nn.Conv2D(3, channels, 3, padding=1), POOLS[pool](),
                                   nn.Conv2D(channels, 16, 1)), image(3, 3, 11, 9)))


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_dims(dims, train):
    conv, norm = [(nn.Conv1D, nn.BatchNorm1D), (nn.Conv2D, nn.BatchNorm2D), (nn.Conv3D, nn.BatchNorm3D)][dims - 1]
    transpose = [nn.Conv1DTranspose, nn.Conv2DTranspose, nn.Conv3DTranspose][dims - 1]
    pool = [nn.MaxPool1D, nn.MaxPool2D, nn.MaxPool3D][dims - 1]
    same(lambda: run(nn.Sequential(conv(3, 32, 3, padding=1, bias_attr=False), norm(32), nn.ReLU(), pool(2),
                                   conv(32, 16, 1), transpose(16, 32, 3, stride=2, bias_attr=False), norm(32),
                                   transpose(32, 16, 2)),
                     image(2, 3, *[8, 9, 7][:dims]), train))


@pytest.mark.parametrize("groups", [1, 2, 32])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_groups_and_layouts(groups, layout):
    shape = (2, 3, 8, 9) if layout == "NCHW" else (2, 8, 9, 3)
    same(lambda: run(nn.Sequential(nn.Conv2D(3, 32, 3, padding=1, data_format=layout, bias_attr=False),
                                   nn.BatchNorm2D(32, data_format=layout), nn.ReLU(),
                                   nn.Conv2D(32, 32, 3, stride=2, padding=1, groups=groups, data_format=layout),
                                   nn.MaxPool2D(2, data_format=layout)), image(*shape)))


class Block(nn.Layer):
    def __init__(self, channels, dilation=1):
        super().__init__()
        self.a = nn.Conv2D(channels, channels, 3, padding=dilation, dilation=dilation, bias_attr=False)
        self.b = nn.BatchNorm2D(channels)
        self.c = nn.Conv2D(channels, channels, 1)

    def forward(self, x):
        y = F.relu(self.b(self.a(x)))
        return F.relu(x + self.c(y) * 0.5 - y / 3.0)


def net(channels=32):
    return nn.Sequential(nn.Conv2D(3, channels, 3, stride=2), Block(channels), Block(channels, 2),
                         nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(channels, 5))


@pytest.mark.parametrize("channels", [24, 32, 64])
def test_residual(channels):
    same(lambda: run(net(channels), image(2, 3, 17, 13)))


def lying(*shape):
    """A tensor that lies blocked (where it may) and its values."""
    conv = nn.Conv2D(3, shape[1], 1)
    t = conv(image(shape[0], 3, *shape[2:])).detach()
    return t


USES = {
    "slice": lambda t: t[1:, 3:7, ::2],
    "view": lambda t: t.reshape([t.shape[0], -1]),
    "transpose": lambda t: t.transpose([0, 2, 3, 1]),
    "sum": lambda t: t.sum(axis=[1, 2]),
    "mean over channels": lambda t: t.mean(axis=1),
    "concat": lambda t: paddle.concat([t, t * 2, paddle.ones_like(t)], axis=1),
    "broadcast": lambda t: t * t.mean(axis=[2, 3], keepdim=True) + paddle.arange(t.shape[3], dtype="float32"),
    "softmax": lambda t: F.softmax(t, axis=1),
    "dropout": lambda t: F.dropout(t, 0.5),
    "flatten": lambda t: paddle.flatten(t, 1),
    "cast": lambda t: t.astype("bfloat16").astype("float64"),
    "to bool": lambda t: (t > 0).astype("float32"),
    "clip": lambda t: paddle.clip(t, -0.5, 0.5),
    "where": lambda t: paddle.where(t > 0, t, t * 3),
    "interpolate": lambda t: F.interpolate(t, scale_factor=2),
    "pad": lambda t: F.pad(t, [1, 1, 2, 2]),
    "split": lambda t: paddle.split(t, 2, axis=1)[1],
    "power": lambda t: t ** 2,
    "exp": lambda t: paddle.exp(t) + 1,
    "scalar": lambda t: 1 - t * paddle.to_tensor(2.0),
    "group norm": lambda t: F.layer_norm(t, t.shape[1:]),
    "matmul": lambda t: paddle.matmul(t, t, transpose_y=True),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("channels", [16, 24])
def test_uses(use, channels):
    same(lambda: [USES[use](lying(2, channels, 6, 4)).astype("float32").numpy()], 1e-4)


def test_reading():
    def read():
        t = lying(2, 32, 5, 4)
        shared = np.asarray(paddle.to_tensor(t))
        dl = paddle.utils.dlpack.from_dlpack(paddle.utils.dlpack.to_dlpack(lying(2, 32, 5, 4)))
        file = io.BytesIO()
        paddle.save({"t": lying(2, 32, 5, 4)}, file)
        file.seek(0)
        return [np.array(t.tolist(), "float32"), np.array([t[1, 2, 3, 1].item(), t.sum().item()], "float32"), shared,
                dl.numpy(), paddle.load(file)["t"].numpy(), t.clone().numpy(), t.detach().numpy(),
                np.array(memoryview(paddle._core.memory(lying(2, 32, 5, 4))))]
    same(read)
    assert "Tensor(shape=[2, 32, 5, 4]" in str(lying(2, 32, 5, 4))


def test_writing():
    def write():
        out = []
        t = lying(2, 32, 5, 4)
        alias = t.detach()
        t[0, 1] = 5.0
        out += [t.numpy(), alias.numpy()]
        t = lying(2, 32, 5, 4)
        part = t[1]
        part[3] = 2.0  # through a view
        F.relu_(t)
        out += [t.numpy(), part.numpy()]
        t = lying(2, 32, 5, 4)
        t.add_(lying(2, 32, 5, 4)).scale_(0.5)
        t.add_(paddle.ones([2, 32, 5, 4]))
        out.append(t.numpy())
        t = lying(2, 32, 5, 4)
        t.numpy()
        t.add_(t)  # has both forms
        out.append(t.numpy())
        t = lying(2, 32, 5, 4)
        t.set_value(np.full([2, 32, 5, 4], 3.0, "float32"))
        out.append((t + lying(2, 32, 5, 4)).numpy())
        return out
    same(write)


def test_writing_through_one_of_several_handles():
    def write():
        conv, out = nn.Conv2D(32, 16, 3), []
        t = lying(2, 32, 5, 4)
        first, second = t.detach(), t.detach()
        part = first[1]
        part[2] = 4.0  # drops the blocked form that `second` still counts on
        out += [conv(second).numpy(), F.relu(second).numpy(), F.max_pool2d(t, 2).numpy(), (second + t).numpy()]
        low = lying(2, 32, 5, 4).astype("bfloat16")
        with pytest.raises(Exception):
            low.add_(lying(2, 32, 5, 4).astype("complex64"))
        out.append(low.astype("float32").numpy())
        return out
    same(write, 1e-4)


def test_plain_and_blocked_together():
    def mix():
        a, b = lying(2, 32, 5, 4), paddle.to_tensor(np.random.RandomState(3).randn(2, 32, 5, 4).astype("float32"))
        strided = paddle.to_tensor(np.random.RandomState(4).randn(2, 5, 4, 32).astype("float32")).transpose([0, 3, 1, 2])
        return [(a + b).numpy(), (b + a).numpy(), (a * strided).numpy(), (strided - a).numpy(),
                paddle.maximum(a, b).numpy(), (a == a).astype("int32").numpy()]
    same(mix)


OPTIMIZERS = {
    "sgd": lambda p: paddle.optimizer.SGD(0.05, parameters=p),
    "momentum": lambda p: paddle.optimizer.Momentum(0.02, parameters=p, use_nesterov=True),
    "adam": lambda p: paddle.optimizer.Adam(0.01, parameters=p),
    "adamw": lambda p: paddle.optimizer.AdamW(0.01, parameters=p, weight_decay=0.1),
    "rmsprop": lambda p: paddle.optimizer.RMSProp(0.01, parameters=p, centered=True),
    "lamb": lambda p: paddle.optimizer.Lamb(0.01, parameters=p),
    "decay": lambda p: paddle.optimizer.Momentum(0.02, parameters=p, weight_decay=paddle.regularizer.L2Decay(0.1)),
    "norm": lambda p: paddle.optimizer.Adam(0.01, parameters=p, grad_clip=nn.ClipGradByGlobalNorm(0.5)),
    "value": lambda p: paddle.optimizer.SGD(0.05, parameters=p, grad_clip=nn.ClipGradByValue(0.1)),
}


def train(layer, optimizer, steps=4, look=None):
    losses = []
    for i in range(steps):
        x = image(4, 3, 15, 12, seed=i)
        loss = F.cross_entropy(layer(x), paddle.to_tensor(np.arange(4) % 5))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if look:
            look(i, layer, optimizer)
        losses.append(loss.item())
    state = {**layer.state_dict(), **{k: v for k, v in optimizer.state_dict().items() if hasattr(v, "numpy")}}
    return [np.array(losses, "float32")] + [state[k].numpy() for k in state]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(name):
    def once():
        layer = net()
        return train(layer, OPTIMIZERS[name](layer.parameters()))
    same(once, 5e-4)


def test_parameters_that_others_look_at():
    """Parameters move into blocked memory; who holds their address, a view or a copy is not harmed."""
    def once():
        layer = net()
        optimizer = paddle.optimizer.Adam(0.01, parameters=layer.parameters())
        seen, held = [], []

        def look(i, net_, opt):
            weight = net_[1].a.weight
            if i == 0:
                held.append(memoryview(paddle._core.memory(weight)))  # keeps the memory where it is
            if i == 1:
                held.append(weight.detach())
                held.append(net_[2].a.weight[3])
                held.append(paddle.utils.dlpack.to_dlpack(net_[2].c.weight))
            if i == 2:
                opt.set_state_dict(opt.state_dict())
                net_.set_state_dict(net_.state_dict())
                seen.extend([weight.numpy(), (weight * 2).numpy(), weight.sum().numpy()])
                held.pop(0).release()
                gc.collect()

        result = train(layer, optimizer, 6, look)
        return result + seen + [held[0].numpy(), held[1].numpy()]
    same(once, 5e-4)


def test_accumulation_and_double_gradient():
    def once():
        layer, x = net(), image(2, 3, 17, 13)
        for _ in range(2):
            layer(x).sum().backward()
        g, = paddle.grad((layer(x) ** 2).sum(), x, create_graph=True)
        (g * g).sum().backward()
        return [x.grad.numpy()] + [p.grad.numpy() for p in layer.parameters() if p.grad is not None]
    same(once, 1e-4)


def test_amp():
    def once():
        layer = net()
        optimizer = paddle.optimizer.SGD(0.05, parameters=layer.parameters())
        scaler = paddle.amp.GradScaler(init_loss_scaling=128.0)
        for i in range(3):
            with paddle.amp.auto_cast(dtype="bfloat16"):
                loss = (layer(image(4, 3, 15, 12, seed=i)) ** 2).mean()
            scaler.minimize(optimizer, scaler.scale(loss))
            optimizer.clear_grad()
        return [p.numpy() for p in layer.parameters()]
    same(once, 2e-2)


def test_compiled_and_eager_take_turns():
    def once():
        layer = net()
        optimizer = paddle.optimizer.Adam(0.01, parameters=layer.parameters())
        out = train(layer, optimizer, 2)
        compiled = paddle.jit.to_static(net())
        compiled.set_state_dict(layer.state_dict())
        other = paddle.optimizer.Adam(0.01, parameters=compiled.parameters())
        out += train(compiled, other, 2)
        layer.eval()
        fast = paddle.jit.to_static(layer)
        x = image(2, 3, 15, 12)
        out += [fast(x).numpy(), train(layer, optimizer, 1)[0], fast(x).numpy()]
        return out
    same(once, 5e-4)


def test_threads():
    """Several threads may want the plain form of one tensor at once."""
    t = lying(4, 64, 24, 24)
    expected, results = None, [None] * 8
    barrier = threading.Barrier(8)

    def read(i):
        barrier.wait()
        results[i] = (t.sum(axis=1) if i % 2 else t[1:3].sum(axis=0)).numpy()

    threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
    [x.start() for x in threads]
    [x.join() for x in threads]
    expected = t.numpy()
    for i, r in enumerate(results):
        np.testing.assert_allclose(r, expected.sum(axis=1) if i % 2 else expected[1:3].sum(axis=0), atol=1e-4)


@pytest.fixture
def passes():
    yield lambda names: paddle.set_flags({"FLAGS_passes": names})
    paddle.set_flags({"FLAGS_passes": "all"})


def test_compiled_training_is_eager_training(passes):
    """Plans lay tensors as eager calls do: the same bits. Parameters move into blocked memory after the first step,
    and are looked at, overwritten and pinned later."""
    passes("none")

    def once(convert):
        paddle.seed(3)
        layer = net()
        optimizer = paddle.optimizer.Adam(0.01, parameters=layer.parameters())
        called, out, held = convert(layer), [], []
        for i in range(6):
            loss = (called(image(4, 3, 15, 12, seed=i)) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=i % 2 == 0)
            out.append(loss.numpy())
            weight = layer.parameters()[0]
            if i == 2:
                out.append(weight.numpy())
                weight.set_value(weight * 0.5)
            if i == 3:
                held.append(memoryview(paddle._core.memory(weight)))
        held[0].release()
        return out + [p.numpy() for p in layer.parameters()] + [b.numpy() for b in layer.buffers()]

    for a, b in zip(once(lambda layer: layer), once(paddle.jit.to_static)):
        np.testing.assert_array_equal(a, b)


def test_a_program_that_steps_and_looks_at_its_parameters(passes):
    """An optimizer inside a program moves parameters; a later op of the same program reads them nevertheless."""
    from proa import static

    def once(names):
        passes(names)
        paddle.enable_static()
        try:
            main, startup = static.Program(), static.Program()
            with static.program_guard(main, startup):
                paddle.seed(5)
                x = static.data("x", [4, 3, 15, 12])
                y = nn.functional.relu(static.nn.batch_norm(static.nn.conv2d(x, 20, 3)))
                weight = main.all_parameters()[0]
                loss = (static.nn.conv2d(y, 16, 3) ** 2).mean()
                paddle.optimizer.Adam(0.01, weight_decay=0.1).minimize(loss)
                after = weight.abs().sum()
                exe = static.Executor()
                exe.run(startup)
                rng = np.random.RandomState(0)
                feeds = [{"x": rng.randn(4, 3, 15, 12).astype("float32")} for _ in range(4)]
                return [v for feed in feeds for v in exe.run(main, feed, [loss, after, y])]
        finally:
            paddle.disable_static()

    for names in ("none", "all"):
        same(lambda: once(names), 5e-4)


def test_compiled_features_go_on_eagerly():
    """Outputs of a compiled function may be blocked, and so may its inputs."""
    def once():
        body, head = paddle.jit.to_static(net(20)[1]), net(20)[2]
        again = paddle.jit.to_static(net(20)[2])
        x = image(2, 20, 9, 7)
        y = body(x)
        z = head(y) + again(y)
        z.sum().backward()
        return [y.numpy(), z.numpy(), x.grad.numpy(), y.numpy()[:, :, 1:3]]
    same(once, 1e-4)


@pytest.mark.parametrize("channels", [14, 16, 18, 21, 24])
@pytest.mark.parametrize("train", [False, True])
def test_compiled_chains_of_padded_channels(channels, train):
    """Channels that do not fill their block: the padding behind a fused chain's results is zeroed again."""
    paddle.seed(3)
    first, second = nn.Conv2D(3, channels, 3, padding=1), nn.Conv2D(channels, channels, 3, padding=1)

    def forward(x):
        y = first(x)
        z = F.sigmoid(y * 2 + 1) + 1            # 0 would become more than that
        w = F.relu(second(z) + z) * 3 + z
        return [y, z, w, second(w).mean([2, 3])]

    x = image(2, 3, 9, 9)
    results = []
    for fn in (forward, paddle.jit.to_static(forward)):
        for parameter in (*first.parameters(), *second.parameters(), x):
            parameter.clear_gradient()
        if not train:
            with paddle.no_grad():
                results.append([t.numpy() for t in fn(x)])
            continue
        out = fn(x)
        sum(t.sum() for t in out).backward()
        results.append([t.numpy() for t in out] + [x.grad.numpy(), second.weight.grad.numpy()])
    for eager, compiled in zip(*results):
        np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-5 * np.abs(eager).max())


def blocked_image(*shape):
    return F.conv2d(image(*shape), paddle.ones([shape[1], shape[1], 1, 1]) * 0.1)


def convolved(x, kernel, outputs, stride, padding, dilation=1, biased=False, lies="blocked", rate=0.01):
    """Results and gradients of three steps. Before them, one over a few places: the filter lies as its gradient is made."""
    inputs = x[1]
    w = paddle.create_parameter([outputs, inputs, *kernel], "float32", default_initializer=nn.initializer.Assign(
        image(outputs, inputs, *kernel, seed=1) / ((kernel[0] * kernel[1] * inputs) ** 0.5)))
    b = paddle.to_tensor(image(outputs, seed=2), stop_gradient=False) if biased else None
    opt = paddle.optimizer.Momentum(rate, parameters=[w])
    F.conv2d(blocked_image(4, inputs, 8, 8), w, stride=2, padding=[k // 2 for k in kernel]).sum().backward()
    opt.step()
    results = []
    for _ in range(3):
        h = blocked_image(*x)
        h.retain_grads()
        y = F.conv2d(h, w, b, stride=stride, padding=padding, dilation=dilation)
        above = image(*y.shape, seed=3)
        if lies == "blocked":
            above = blocked_image(*y.shape)
        gone = paddle.full(h.shape, float("nan"))
        del gone  # what a result is made in next is not what it was made in before
        paddle.autograd.backward([y], [above.detach()])
        results += [t.numpy() for t in (y, h.grad, w.grad) + ((b.grad,) if biased else ())]
        opt.step()
        for t in (w,) + ((b,) if biased else ()):
            t.clear_grad()
    return results


@pytest.mark.parametrize("lies", ["blocked", "plain"])
@pytest.mark.parametrize("batch, inputs, outputs, side, kernel, stride, padding, biased", [
    (16, 32, 48, 2, 3, 1, 1, False), (5, 32, 48, 2, 3, 1, 1, True), (16, 48, 32, 4, 3, 2, 1, True),
    (33, 32, 16, 4, 1, 2, 0, False), (20, 16, 32, 3, 5, 1, 2, True)])
def test_small_maps(batch, inputs, outputs, side, kernel, stride, padding, biased, lies):
    """Maps that are mostly padding have kernels of their own, once the filter lies as its gradient is made."""
    same(lambda: convolved((batch, inputs, side, side), (kernel, kernel), outputs, stride, padding, biased=biased, lies=lies))


COLUMNS = [((4, 64, 8, 8), (3, 3), 48, 2, 1, 1), ((4, 256, 16, 16), (1, 1), 512, (1, 3), 0, 1),
           ((2, 128, 15, 13), (5, 3), 48, (2, 3), [2, 1, 0, 1], 1), ((1, 48, 13, 11), (3, 3), 48, 2, 1, 1),
           ((2, 128, 15, 13), (3, 3), 48, (3, 2), 1, 1), ((2, 80, 14, 10), (3, 3), 48, 2, 0, 2),
           ((2, 128, 15, 13), (4, 4), 48, 2, 1, 1), ((3, 96, 9, 12), (1, 1), 48, 2, 0, 1), ((5, 48, 33, 35), (1, 1), 48, (1, 3), 0, 1),
           ((4, 32, 4, 4), (1, 1), 48, 1, 0, 1), ((1, 16, 11, 9), (1, 1), 16, 1, 0, 1)]


@pytest.mark.parametrize("lies", ["blocked", "plain"])
@pytest.mark.parametrize("x, kernel, outputs, stride, padding, dilation", COLUMNS)
def test_gradients_in_columns(x, kernel, outputs, stride, padding, dilation, lies):
    """So have gradients to the input of strides and over few places."""
    same(lambda: convolved(x, kernel, outputs, stride, padding, dilation, lies=lies))


@pytest.mark.parametrize("x, kernel, outputs, stride, padding, dilation", COLUMNS[:3])
def test_columns_do_not_depend_on_threads(x, kernel, outputs, stride, padding, dilation):
    """Without AVX2, and of strided 1×1 filters without AVX-512, oneDNN has these gradients, whose bits may depend on the team unless a flag says no."""
    results = []
    with open("/proc/cpuinfo") as info:
        own = " avx512vl" in info.read() and int(paddle.get_flags("FLAGS_cpu_level")["FLAGS_cpu_level"]) > 1
    try:
        paddle.set_flags({"FLAGS_deterministic": not own})
        for threads in (1, 2, 7):
            paddle.set_flags({"FLAGS_num_threads": threads})
            results.append([t.tobytes() for t in convolved(x, kernel, outputs, stride, padding, dilation, rate=0.0)[1::3]])
    finally:
        paddle.set_flags({"FLAGS_num_threads": 0, "FLAGS_deterministic": False})
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("height, width", [(28, 28), (10, 10), (9, 13), (7, 6), (2, 3), (16, 17), (3, 2)])
@pytest.mark.parametrize("ties", [False, True])
def test_windows_side_by_side(height, width, ties):
    """Float32 has a path of its own: the first of equal values and NaN are treated as in float64."""
    values = image(3, 5, height, width).numpy()
    if ties:
        values = np.round(values)
    else:
        values[0, 0, 0, 0] = values[0, 1, 1, 1] = np.nan
    results = []
    for dtype in ("float32", "float64"):
        x = paddle.to_tensor(values.astype(dtype), stop_gradient=False)
        y = F.max_pool2d(x, 2, 2)
        y.backward(image(*y.shape, seed=1).detach().astype(dtype))
        results.append((y.numpy().astype("float32"), x.grad.numpy().astype("float32")))
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("batch, inputs, outputs, height, width, kernel, padding, biased", [
    (64, 1, 6, 28, 28, (3, 3), 1, True), (5, 3, 7, 17, 40, (5, 5), 2, False), (4, 2, 1, 9, 9, (3, 3), 0, True),
    (33, 4, 11, 12, 33, (4, 3), (1, 0), True), (6, 1, 2, 10, 12, (1, 5), 0, False)])
def test_few_channels(batch, inputs, outputs, height, width, kernel, padding, biased):
    """Results of a few channels are vectors of places in float32: they agree with float64."""
    results = []
    for dtype in ("float32", "float64"):
        x, w = image(batch, inputs, height, width).detach(), image(outputs, inputs, *kernel, seed=1).detach()
        x, w = (t.astype(dtype) for t in (x, w))
        w.stop_gradient = False
        y = F.conv2d(x, w, image(outputs, seed=2).detach().astype(dtype) if biased else None, padding=padding)
        (y * image(*y.shape, seed=3).detach().astype(dtype)).sum().backward()
        results.append([t.numpy().astype("float64") for t in (y, w.grad)])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 * np.abs(b).max())


@pytest.mark.parametrize("batch, inputs, outputs, height, width, kernel, stride, padding, dilation", [
    (64, 6, 16, 14, 14, (5, 5), 1, 0, 1), (33, 6, 16, 9, 14, (5, 5), 1, 2, 1), (10, 12, 24, 8, 37, (3, 3), 1, [1, 0, 2, 1], 1),
    (16, 3, 48, 19, 21, (7, 7), 2, 3, 1), (29, 1, 10, 11, 9, (3, 5), (2, 1), (1, 0), 1), (61, 9, 12, 9, 18, (4, 3), (1, 3), 1, 1),
    (12, 5, 16, 9, 9, (3, 3), 1, 2, 2), (3, 7, 11, 6, 5, (3, 3), 1, 1, 1)])
@pytest.mark.parametrize("lies", ["plain", "blocked"])
def test_narrow_inputs(batch, inputs, outputs, height, width, kernel, stride, padding, dilation, lies):
    """Gradients over a few input channels have kernels of their own in float32: they agree with float64, however the
    gradient of the result lies."""
    results = []
    for dtype in ("float32", "float64"):
        x, w = (t.astype(dtype).detach() for t in (image(batch, inputs, height, width), image(outputs, inputs, *kernel, seed=1)))
        x.stop_gradient = w.stop_gradient = False
        y = F.conv2d(x, w, None, stride, padding, dilation)
        above = image(*y.shape, seed=3).detach().astype(dtype)
        if lies == "blocked":
            above = F.conv2d(above, paddle.eye(outputs, dtype=dtype).reshape([outputs, outputs, 1, 1]))
        results.append([t.numpy().astype("float64") for t in paddle.grad([y], [x, w], [above])])
    for a, b, terms in zip(*results, (outputs * kernel[0] * kernel[1], batch * y.shape[2] * y.shape[3])):
        np.testing.assert_allclose(a, b, rtol=0, atol=2 ** -24 * terms ** 0.5 * np.abs(b).max())
