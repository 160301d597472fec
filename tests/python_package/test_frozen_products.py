"""Products with weights that never change (ops/packed.h), as predictors run them: against float64, with every
activation that is fused into them, and the same bits whatever the number of threads."""
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


def predicted(net, x, folder, threads):
    paddle.jit.save(net, str(folder / "net"), input_spec=[paddle.static.InputSpec(list(x.shape), "float32")])
    results = []
    for count in threads:
        config = paddle.inference.Config(str(folder / "net.pdmodel"), str(folder / "net.pdiparams"))
        config.set_cpu_math_library_num_threads(count)
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
