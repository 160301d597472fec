"""Names of Paddle 2.0 that 2.6.2 dropped."""
import proa as paddle


def test_methods_of_two_point_oh():
    x = paddle.to_tensor([1.0, 3.0, 1.0])
    assert x.logsigmoid().tolist() == paddle.nn.functional.log_sigmoid(x).tolist()
    values, index, counts = x.unique_with_counts()
    assert (values.tolist(), index.tolist(), counts.tolist()) == ([1.0, 3.0], [0, 1, 0], [2, 1])
    assert x.sums().tolist() == x.tolist()
    assert paddle.device.XPUPlace is paddle.XPUPlace and callable(paddle.check_shape)
