"""Where Proa differs from Paddle on purpose, as docs/migration.md says."""
import numpy as np

import proa as paddle


def test_gradient_of_a_batch_s_statistics_in_evaluation_mode():
    norm = paddle.nn.BatchNorm(4, dtype="float64", trainable_statistics=True)
    norm.eval()
    norm._variance.set_value(np.full(4, 2.0))
    rng = np.random.default_rng(0)
    x, weight, step = (paddle.to_tensor(rng.standard_normal((2, 4, 3, 3))) for _ in range(3))
    x.stop_gradient = False

    def loss(x):
        return (norm(x) * weight).sum()

    loss(x).backward()
    along = (x.grad * step).sum().item()
    with paddle.no_grad():
        difference = (loss(x + 1e-5 * step) - loss(x - 1e-5 * step)).item() / 2e-5
    assert abs(along - difference) < 1e-6 * abs(difference)
