"""Convolution on gpu:0 beyond the op table's samples: more shapes than plans are kept, memory at odd addresses, depthwise
and uneven paddings, and the absence of any trace of TF32 unless its flag allows it."""
import numpy as np
import pytest

from test_devices import on, plugin_of
from proa import _core


@pytest.fixture(autouse=True)
def device():
    path = plugin_of("gpu:0")
    if path is None:
        pytest.skip("gpu:0: its plug-in is not built here")
    _core.load_devices(str(path))
    _core.set_flag("device_fallback", "0")


def both(fn, *arrays):
    """fn of tensors on the CPU and on gpu:0; close."""
    results = []
    for name in ("cpu", "gpu:0"):
        with on(name):
            out = fn(*[_core.to_device(_core.from_numpy(x), name) for x in arrays])
            results.append(_core.to_device(out, "cpu").numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=2e-5, atol=2e-5)
    return results[1]


def normal(*shape):
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype("float32")


def test_more_shapes_than_plans():
    for again in range(2):
        for width in range(3, 80):
            for kernel in (1, 3):
                both(lambda x, w: _core.conv2d(x, w, None), normal(1, 1, 3, width), normal(1, 1, kernel, kernel))


@pytest.mark.parametrize("skip", [1, 2, 3])
def test_odd_addresses(skip):
    def conv(x, w):
        part = _core.slice(x, [0], [skip], [skip + 1])  # contiguous, `skip` images of 15 elements on
        return _core.conv2d(part, w, None, padding=[1, 1])
    both(conv, normal(5, 1, 3, 5), normal(2, 1, 3, 3))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("padding", [[0, 0], [2, 0, 1, 3], [0, 2, 0, 0]])
@pytest.mark.parametrize("stride", [[1, 1], [2, 3]])
def test_depthwise_gradients(layout, padding, stride):
    x = normal(2, 6, 7, 8) if layout == "NCHW" else normal(2, 7, 8, 6)
    for wrt in (0, 1):
        def gradient(a, b):
            leaf = (a, b)[wrt]
            leaf.stop_gradient = False
            out = _core.conv2d(a, b, None, stride=stride, padding=padding, groups=6, data_format=layout)
            return _core.grad([_core.sum(_core.multiply(out, out))], [leaf], [None])[0]
        both(gradient, x, normal(6, 1, 3, 2))


def test_float32_is_not_rounded():
    """1 + 2^-20 is 1 in TF32, which has 10 bits of mantissa."""
    x = np.full((1, 16, 8, 8), 1 + 2.0 ** -20, dtype="float32")
    w = np.zeros((16, 16, 1, 1), dtype="float32")
    w[range(16), range(16)] = 1
    assert np.array_equal(both(lambda a, b: _core.conv2d(a, b, None), x, w), x)
