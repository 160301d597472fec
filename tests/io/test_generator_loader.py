"""DataLoader.from_generator and from_dataset of Paddle 2.0, which 2.6.2 dropped."""
import numpy as np
import proa as paddle
import pytest
from proa.fluid.core import EOFException


def samples():
    for i in range(5):
        yield np.full([2], i, "float64"), i


def test_eager_lists():
    loader = paddle.io.DataLoader.from_generator(capacity=2, return_list=True)
    with pytest.raises(AssertionError, match="set_sample_generator"):
        next(iter(loader))
    loader.set_sample_generator(samples, batch_size=2)
    assert [[t.shape for t in batch] for batch in loader] == [[[2, 2], [2]]] * 2
    loader.set_sample_generator(samples, batch_size=2, drop_last=False)
    assert [batch[0].shape for batch in loader()] == [[2, 2], [2, 2], [1, 2]]


def test_an_array_is_a_sample_of_its_rows():
    loader = paddle.io.DataLoader.from_generator(capacity=2, return_list=True)
    loader.set_sample_list_generator(paddle.batch(lambda: iter([np.ones([3, 4]), np.zeros([3, 4])]), 2))
    assert [[t.shape for t in batch] for batch in loader] == [[[2, 4]] * 3]


@pytest.fixture
def static():
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        yield paddle.static.data("x", [-1, 2]), paddle.static.Executor()
    paddle.disable_static()


def test_feeds_of_programs(static):
    x, exe = static
    out = x * 2
    loader = paddle.io.DataLoader.from_generator([x, paddle.static.data("n", [-1, 1], "int64")], 2)
    loader.set_sample_generator(samples, batch_size=2)
    for i, feeds in enumerate(loader):
        assert feeds[0]["n"].tolist() == [[2 * i], [2 * i + 1]]
        assert exe.run(feed=feeds, fetch_list=[out])[0].dtype == np.float32


def test_started_loader_ends_in_eof(static):
    x, exe = static
    out = x * 2
    loader = paddle.io.DataLoader.from_generator([x], 2, iterable=False)
    loader.set_batch_generator(lambda: (np.full([i + 1, 2], i, "float32") for i in range(3)))
    for _ in range(2):
        loader.start()
        seen = []
        with pytest.raises(EOFException):
            while True:
                seen.append(exe.run(fetch_list=[out])[0])
        assert [v.shape[0] for v in seen] == [1, 2, 3] and seen[2].max() == 4
        loader.reset()


def test_methods_of_two_point_oh():
    x = paddle.to_tensor([1.0, 3.0, 1.0])
    assert x.logsigmoid().tolist() == paddle.nn.functional.log_sigmoid(x).tolist()
    values, index, counts = x.unique_with_counts()
    assert (values.tolist(), index.tolist(), counts.tolist()) == ([1.0, 3.0], [0, 1, 0], [2, 1])
    assert x.sums().tolist() == x.tolist()
    assert paddle.device.XPUPlace is paddle.XPUPlace and callable(paddle.check_shape)
