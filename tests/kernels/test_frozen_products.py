"""Products and convolutions with weights that never change (kernels/prepacked_gemm.h, ops/conv/winograd.h, depthwise.h), as
predictors run them: against float64, with every activation that is fused into them, and the same bits whatever the
number of threads."""
import numpy as np
import pytest

import proa as paddle
import proa.nn.functional as F


class Product(paddle.nn.Layer):
    def __init__(self, k, n, activation):
        super().__init__()
        rng = np.random.RandomState(k + n)
        self.product = paddle.nn.Linear(k, n)
        self.product.weight.set_value((rng.randn(k, n) / k ** 0.5).astype("float32"))
        self.product.bias.set_value(rng.randn(n).astype("float32"))
        self.activation = activation

    def forward(self, x):
        y = self.product(x)
        return self.activation(y) if self.activation else y

    def exact(self, x):
        with np.errstate(invalid="ignore"):  # infinity · 0
            y = x.astype("float64") @ self.product.weight.numpy().astype("float64") + self.product.bias.numpy()
        return self.activation(paddle.to_tensor(y)).numpy() if self.activation else y


def predicted(net, x, folder, threads, bfloat16=False):
    paddle.jit.save(net, str(folder / "net"), input_spec=[paddle.static.InputSpec(list(x.shape), "float32")])
    results = []
    for count in threads:
        config = paddle.inference.Config(str(folder / "net.pdmodel"), str(folder / "net.pdiparams"))
        config.set_cpu_math_library_num_threads(count)
        if bfloat16:
            config.enable_mkldnn_bfloat16()
        predictor = paddle.inference.create_predictor(config)
        first, again = (predictor.run([paddle.to_tensor(x)])[0].numpy() for _ in range(2))
        np.testing.assert_array_equal(first, again)
        results.append(first)
    return results


# rows, depth and columns: depths of which rows are copied first, in one block, in several of the depth or of the
# rows, in more than are kept; and columns that fill no vector
SHAPES = [(128, 3072, 768), (196, 1024, 256), (300, 512, 640), (3, 71 * 1024, 160), (2, 4096, 50), (13, 1024, 2047),
          (700, 512, 33), (1, 2048, 96), (128, 768, 96)]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_shapes(shape, tmp_path):
    m, k, n = shape
    x = np.random.RandomState(m).randn(m, k).astype("float32")
    net = Product(k, n, None)
    results = predicted(net, x, tmp_path, (1, 2, 3, 7))
    np.testing.assert_allclose(results[0], net.exact(x), rtol=0, atol=2e-6 * k ** 0.25)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("rows", [1, 2, 40])
def test_bfloat16(rows, tmp_path):
    """A single row reads packed weights, too. CPUs that do not multiply bfloat16 numbers run the model in float32."""
    x = np.random.RandomState(rows).randn(rows, 2048).astype("float32")
    net = Product(2048, 1000, None)
    results = predicted(net, x, tmp_path, (1, 2, 3), bfloat16=True)
    np.testing.assert_allclose(results[0], net.exact(x), rtol=2**-7, atol=0.03)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("activation", [
    F.relu, F.relu6, F.leaky_relu, F.elu, F.sigmoid, paddle.tanh, F.gelu, lambda x: F.gelu(x, approximate=True),
    F.silu, F.hardswish, F.hardsigmoid], ids=["relu", "relu6", "leaky_relu", "elu", "sigmoid", "tanh", "gelu",
                                              "gelu_tanh", "silu", "hardswish", "hardsigmoid"])
def test_activations(activation, tmp_path):
    x = (4 * np.random.RandomState(0).randn(45, 70)).astype("float32")
    edges = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 88.0, -88.0, 200.0, -200.0, 1e-30])
    net = Product(70, 37, activation)
    weight = net.product.weight.numpy()
    weight[0] = 1
    net.product.weight.set_value(weight)
    for case in (x, np.pad(edges[:, None], ((0, 0), (0, 69)))):
        one, two = predicted(net, case, tmp_path, (1, 2))
        np.testing.assert_allclose(one, net.exact(case).astype("float32"), rtol=3e-6, atol=3e-6)
        np.testing.assert_array_equal(one, two)


def conv(*sizes, **how):
    return paddle.nn.Conv2D(*sizes, data_format="NHWC", **how)


def depthwise(channels, kernel=3, **how):
    return conv(channels, channels, kernel, groups=channels, **how)


class Inverted(paddle.nn.Layer):
    """Widening, depthwise and narrowing, as MobileNetV2 has them; what comes in is added where it fits."""

    def __init__(self, narrow, wide, out, stride):
        super().__init__()
        self.path = paddle.nn.Sequential(
            conv(narrow, wide, 1), paddle.nn.ReLU6(), depthwise(wide, padding=1, stride=stride),
            paddle.nn.ReLU6(), conv(wide, out, 1))
        self.adds = stride == 1 and narrow == out

    def forward(self, x):
        return x + self.path(x) if self.adds else self.path(x)


class Beside(paddle.nn.Layer):
    def __init__(self, one, other):
        super().__init__()
        self.one, self.other = one, other

    def forward(self, x):
        return F.silu(self.one(x) + self.other(x))


class Residual(paddle.nn.Layer):
    def __init__(self, path):
        super().__init__()
        self.path = path

    def forward(self, x):
        return x + self.path(x)


# what convolves, size and channels of what it reads, images: tiles of 2×2 results (few: where they are many, larger ones
# take less), in one chunk and in two, of 3×3 and of 4×4, whole and cut off by the map's edges; channels that fill one
# vector and a half of a panel, or end within one; lines of results by two and alone; few channels by phases, with tiles
# within the image, across its edges and outside
CONVOLUTIONS = {
    "3x3-few-tiles": (lambda: conv(64, 80, 3, padding=1), (7, 7, 64), 1),
    "3x3-512": (lambda: conv(512, 48, 3, padding=1), (8, 7, 512), 1),
    "3x3-middle-160": (lambda: conv(96, 160, 3, padding=1), (14, 15, 96), 1),
    "3x3-two-chunks": (lambda: conv(320, 64, 3, padding=1), (10, 9, 320), 1),
    "3x3-middle-images": (lambda: conv(32, 32, 3, padding=1), (9, 9, 32), 8),
    "3x3-middle-whole": (lambda: conv(64, 32, 3, padding=1), (15, 15, 64), 1),
    "3x3-middle-uneven": (lambda: conv(48, 80, 3, padding=[0, 1, 2, 0]), (14, 13, 48), 1),
    "3x3-middle-512": (lambda: conv(512, 48, 3, padding=1), (11, 13, 512), 1),
    "3x3-middle-residual": (lambda: Residual(conv(96, 96, 3, padding=1)), (13, 15, 96), 1),
    "3x3-large-tiles": (lambda: conv(32, 32, 3), (61, 40, 32), 2),
    "3x3-large-whole": (lambda: conv(64, 80, 3, padding=1), (28, 32, 64), 1),
    "3x3-large-uneven": (lambda: conv(48, 32, 3, padding=[0, 1, 2, 0]), (29, 35, 48), 1),
    "3x3-large-256": (lambda: conv(256, 48, 3, padding=1), (23, 27, 256), 1),
    "3x3-large-512": (lambda: conv(512, 48, 3, padding=1), (23, 27, 512), 1),
    "3x3-large-residual": (lambda: Residual(conv(96, 96, 3, padding=1)), (30, 26, 96), 1),
    "3x3-stride": (lambda: conv(64, 80, 3, padding=1, stride=2), (29, 31, 64), 1),
    "3x3-stride-512": (lambda: conv(512, 32, 3, padding=1, stride=2), (14, 28, 512), 1),
    "3x3-stride-no-padding": (lambda: conv(32, 48, 3, stride=2), (24, 33, 32), 2),
    "3x3-stride-uneven": (lambda: conv(48, 32, 3, stride=2, padding=[0, 1, 2, 0]), (30, 26, 48), 2),
    "7x7-stride": (lambda: conv(3, 64, 7, padding=3, stride=2), (64, 61, 3), 2),
    "7x7-stride-no-padding": (lambda: conv(2, 32, 7, stride=2), (37, 29, 2), 1),
    "7x7-stride-1-channel": (lambda: conv(1, 48, 7, padding=[3, 0, 2, 5], stride=2), (40, 40, 1), 3),
    "8x7-stride-4-channels": (lambda: conv(4, 16, [8, 7], padding=[3, 2], stride=2), (50, 33, 4), 1),
    "7x7-stride-same": (lambda: conv(3, 16, 7, padding="SAME", stride=2), (39, 42, 3), 1),
    "7x7-stride-beside": (lambda: Beside(conv(3, 32, 7, padding=3, stride=2), conv(3, 32, 1, stride=2)), (64, 50, 3), 2),
    "7x7-stride-small": (lambda: conv(3, 16, 7, stride=2), (7, 7, 3), 20),
    "7x8-stride-5-channels": (lambda: conv(5, 16, [7, 8], padding=3, stride=2), (31, 34, 5), 1),
    "7x7-stride-far-padding": (lambda: conv(3, 32, 7, padding=14, stride=2), (20, 9, 3), 1),
    "1x1-24": (lambda: conv(40, 24, 1), (17, 13, 40), 1),
    "1x1-56": (lambda: conv(7, 56, 1), (30, 13, 7), 2),
    "1x1-20": (lambda: conv(1100, 20, 1), (5, 5, 1100), 1),
    "1x1-stride": (lambda: conv(48, 88, 1, stride=2), (15, 14, 48), 2),
    "depthwise": (lambda: depthwise(35, padding=1), (13, 9, 35), 3),
    "depthwise-low": (lambda: depthwise(200, padding=1), (3, 12, 200), 2),
    "depthwise-flat": (lambda: depthwise(16, padding=1), (1, 5, 16), 2),
    "depthwise-no-padding": (lambda: depthwise(48), (6, 21, 48), 1),
    "depthwise-uneven": (lambda: depthwise(64, padding=[0, 2, 1, 0]), (11, 10, 64), 1),
    "depthwise-stride": (lambda: depthwise(96, padding=1, stride=2), (15, 16, 96), 2),
    "depthwise-across": (lambda: depthwise(96, padding=1, stride=[2, 1]), (15, 16, 96), 2),
    "depthwise-5": (lambda: depthwise(40, 5, padding=2), (12, 7, 40), 1),
    "depthwise-apart": (lambda: depthwise(32, padding=2, dilation=2), (9, 9, 32), 1),
    "inverted": (lambda: Inverted(24, 144, 24, 1), (29, 23, 24), 2),
    "inverted-stride": (lambda: Inverted(16, 96, 24, 2), (31, 40, 16), 1),
}


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case, clips, tmp_path):
    make, size, images = CONVOLUTIONS[case]
    paddle.seed(3)
    net = paddle.nn.Sequential(make(), *([paddle.nn.ReLU6()] if clips else []))
    net.eval()
    for bias in (p for p in net.parameters() if len(p.shape) == 1):
        bias.set_value(paddle.randn(bias.shape))
    x = np.random.RandomState(0).randn(images, *size).astype("float32")
    results = predicted(net, x, tmp_path, (1, 2, 3, 7))
    net.to(dtype="float64")
    exact = net(paddle.to_tensor(x.astype("float64"))).numpy()
    np.testing.assert_allclose(results[0], exact, rtol=0, atol=2e-6 * max(1, np.abs(exact).max()))
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


# the convolution, the side of its results, and the most times its error may be that of sums term by term
PRECISE = {
    "middle-64": (lambda: conv(64, 32, 3), 13, 1.6), "middle-256": (lambda: conv(256, 32, 3), 14, 1.5),
    "large-64": (lambda: conv(64, 32, 3), 32, 3), "large-256": (lambda: conv(256, 32, 3), 32, 3),
    "phases": (lambda: conv(3, 32, 7, stride=2), 32, 3)}


@pytest.mark.parametrize("case", PRECISE)
def test_tiles_are_nearly_as_precise(case, tmp_path):
    """Larger tiles against sums term by term in float32, by their distance from float64."""
    make, side, bound = PRECISE[case]
    paddle.seed(4)
    net = make()
    filters, bias = (p.numpy() for p in net.parameters())
    taps, step, channels = filters.shape[2], net._stride[0], filters.shape[1]
    size = (side - 1) * step + taps
    x = np.maximum(np.random.RandomState(1).randn(1, size, size, channels), 0).astype("float32")
    by_tiles = predicted(net, x, tmp_path, (2,))[0]
    by_terms = np.zeros((side, side, 32), "float32")
    for y, across, c in np.ndindex(taps, taps, channels):
        rows, columns = (slice(first, first + (side - 1) * step + 1, step) for first in (y, across))
        by_terms += x[0, rows, columns, c, None] * filters[:, c, y, across]
    exact = net.to(dtype="float64")(paddle.to_tensor(x.astype("float64"))).numpy()
    tiles_off, terms_off = (np.sqrt(np.mean((r - exact) ** 2)) for r in (by_tiles, by_terms + bias))
    assert 0 < tiles_off < bound * terms_off, (tiles_off, terms_off)


def has_wide_vectors():
    with open("/proc/cpuinfo") as info:
        return " avx512vl" in info.read() and int(paddle.get_flags("FLAGS_cpu_level")["FLAGS_cpu_level"]) > 1


# the convolution, the side of what it reads, the line and column of a NaN there, and the lines that it spreads to: of
# tiles of 2×2, as far as a direct convolution's, of 3×3, of 4×4, and by phases where there are such
SPREADS = {
    "plain": (lambda: conv(64, 16, 3), 12, 7, range(5, 8)), "middle": (lambda: conv(64, 16, 3), 17, 13, range(11, 15)),
    "large": (lambda: conv(64, 16, 3), 34, 13, range(11, 16)),
    "phases": (lambda: conv(3, 16, 7, stride=2), 69, 25, range(9 if has_wide_vectors() else 10, 13))}


@pytest.mark.parametrize("case", SPREADS)
def test_which_tiles_are_taken(case, tmp_path):
    make, side, place, lines = SPREADS[case]
    net = make()
    x = np.ones((1, side, side, net.weight.shape[1]), "float32")
    x[0, place, place] = np.nan
    spoilt = np.isnan(predicted(net, x, tmp_path, (2,))[0][0])
    expected = np.zeros_like(spoilt)
    expected[np.ix_(lines, lines)] = True
    np.testing.assert_array_equal(spoilt, expected)
