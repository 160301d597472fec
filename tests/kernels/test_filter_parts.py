"""Gradients to filters through oneDNN, which parts of images, rows and output channels sum: they agree with NumPy's sums in float64,
and no bit depends on the number of threads."""
import itertools

import numpy as np
import pytest

import proa as paddle
import proa.nn.functional as F


@pytest.fixture(autouse=True)
def flags():
    paddle.set_flags({"FLAGS_winograd": 0})
    yield
    paddle.set_flags({"FLAGS_winograd": 1, "FLAGS_num_threads": 0})


def filter_gradient(x, d, kernel, stride, before, dilation, groups):
    """Sums over images and pixels, tap by tap; x [N, C, …], d [N, O, …] in float64."""
    n, c, *size = x.shape
    o, *out = d.shape[1:]
    after = [max((m - 1) * stride + (k - 1) * dilation + 1 - before - s, 0) for m, k, s in zip(out, kernel, size, strict=True)]
    padded = np.pad(x, [(0, 0), (0, 0), *((before, a) for a in after)]).reshape(
        n, groups, c // groups, *(s + before + a for s, a in zip(size, after, strict=True)))
    d = d.reshape(n, groups, o // groups, -1)
    result = np.empty((groups, o // groups, c // groups, *kernel))
    for tap in itertools.product(*map(range, kernel)):
        window = padded[(..., *(slice(t * dilation, t * dilation + (m - 1) * stride + 1, stride) for t, m in zip(tap, out, strict=True)))]
        result[(..., *tap)] = np.einsum("ngop,ngcp->goc", d, window.reshape(n, groups, c // groups, -1), optimize=True)
    return result.reshape(o, c // groups, *kernel)


def gradient(x, w, d, last, stride, padding, dilation, groups, blocked):
    """blocked: x is the result of a convolution, whose layout it keeps."""
    dims = x.ndim - 2
    conv = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    layout = ("NLC", "NHWC", "NDHWC")[dims - 1] if last else ("NCL", "NCHW", "NCDHW")[dims - 1]
    weight, image = paddle.to_tensor(w, stop_gradient=False), paddle.to_tensor(np.moveaxis(x, 1, -1) if last else x)
    if blocked:
        image = conv(image, paddle.eye(x.shape[1], dtype=image.dtype).reshape([x.shape[1]] * 2 + [1] * dims), data_format=layout)
    y = conv(image, weight, None, stride, padding, dilation, groups, layout)
    y.backward(paddle.to_tensor(np.moveaxis(d, 1, -1) if last else d))
    return weight.grad.numpy()


# images, input and output channels, size, filter, then what differs from stride 1, no padding, no dilation, one group, channels first
CASES = [
    (8, 64, 128, (28, 28), (1, 1), {}),
    (4, 256, 512, (4, 4), (1, 1), {}),
    (4, 96, 200, (8, 8), (1, 1), {}),
    (2, 512, 72, (14, 14), (1, 1), {"stride": 2}),
    (3, 32, 64, (31, 17), (3, 3), {"padding": 1}),
    (1, 16, 24, (64, 64), (3, 3), {"padding": 1}),
    (1, 32, 96, (70, 50), (5, 3), {"padding": 2, "stride": 2}),
    (1, 3, 16, (99, 40), (7, 7), {"padding": 3, "dilation": 2}),
    (2, 3, 64, (64, 64), (7, 7), {"padding": 3, "stride": 2}),
    (5, 64, 128, (15, 15), (3, 3), {"padding": 1, "stride": 2}),
    (2, 40, 88, (20, 20), (5, 5), {"padding": 4, "dilation": 2}),
    (2, 64, 96, (30, 30), (3, 3), {"padding": 1, "groups": 2}),
    (2, 96, 96, (30, 30), (3, 3), {"padding": 1, "groups": 32}),
    (1, 64, 128, (40, 40), (5, 5), {"padding": 2, "groups": 64}),
    (1, 128, 128, (14, 14), (5, 5), {"padding": 2, "groups": 4}),
    (1, 160, 80, (14, 14), (5, 5), {"padding": 2, "groups": 5}),
    (2, 48, 64, (24, 24), (1, 1), {"last": True}),
    (1, 32, 64, (48, 20), (3, 3), {"last": True, "padding": 1}),
    (2, 64, 96, (300,), (5,), {"padding": 2}),
    (1, 16, 32, (5000,), (3,), {"padding": 1, "stride": 3}),
    (2, 16, 40, (9, 12, 12), (3, 3, 3), {"padding": 1}),
    (1, 4, 16, (20, 16, 16), (3, 2, 2), {"stride": 2}),
    (1, 8, 8, (6, 6), (3, 3), {}),
]


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "x".join(map(str, (*c[:3], *c[3], *c[4], *map(str, c[5])))))
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_sums(case, dtype, blocked):
    images, inputs, outputs, size, kernel, how = case
    how = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "last": False, **how}
    rng = np.random.RandomState(3)
    out = [(s + 2 * how["padding"] - how["dilation"] * (k - 1) - 1) // how["stride"] + 1 for s, k in zip(size, kernel, strict=True)]
    arrays = [paddle.to_tensor(rng.randn(*shape).astype("float32")).astype(dtype)
              for shape in ((images, inputs, *size), (outputs, inputs // how["groups"], *kernel), (images, outputs, *out))]
    x, _, d = (a.astype("float64").numpy() for a in arrays)
    expected = filter_gradient(x, d, kernel, how["stride"], how["padding"], how["dilation"], how["groups"])
    results = []
    for threads in (1, 2, 3, 5):
        paddle.set_flags({"FLAGS_num_threads": threads})
        results.append(gradient(*(a.numpy() for a in arrays), how["last"], how["stride"], how["padding"], how["dilation"], how["groups"],
                                blocked))
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    got = paddle.to_tensor(results[0]).astype("float64").numpy()
    np.testing.assert_allclose(got, expected, rtol=0, atol=np.abs(expected).max() * (1e-2 if dtype == "bfloat16" else 2e-6))
