"""The argument `name` names a function's result in a program, as in Paddle: ops of the table and functions in Python alike."""
import numpy as np
import proa as paddle
import pytest

F = paddle.nn.functional

# The results that real Paddle 2.6.2 names alike, by the call: `n` is the name.
CALLS = {
    "exp": lambda x, y, n: paddle.exp(x, name=n), "reshape": lambda x, y, n: paddle.reshape(x, [-1], name=n),
    "transpose": lambda x, y, n: paddle.transpose(x, [1, 0], n), "relu": lambda x, y, n: F.relu(x, n),
    "softmax": lambda x, y, n: F.softmax(x, name=n), "pow": lambda x, y, n: paddle.pow(x, 2.0, name=n),
    "full": lambda x, y, n: paddle.full([2], 1.0, name=n), "linear": lambda x, y, n: F.linear(x, y, name=n),
    "mse_loss": lambda x, y, n: F.mse_loss(x, y, name=n), "where": lambda x, y, n: paddle.where(x > 0, x, y, name=n),
    "rand": lambda x, y, n: paddle.rand([2], name=n), "norm": lambda x, y, n: paddle.linalg.norm(x, name=n),
    "fft": lambda x, y, n: paddle.fft.fft(x, name=n), "dropout": lambda x, y, n: F.dropout(x, name=n)}
WHOLE = {
    "add": lambda x, y, n: paddle.add(x, y, name=n), "maximum": lambda x, y, n: paddle.maximum(x, y, name=n),
    "flip": lambda x, y, n: paddle.flip(x, 0, name=n), "glu": lambda x, y, n: F.glu(x, name=n),
    "normalize": lambda x, y, n: F.normalize(x, name=n)}


@pytest.fixture
def program():
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
            yield [paddle.static.data(name, [4, 4], "float32") for name in "xy"]
    finally:
        paddle.disable_static()


@pytest.mark.parametrize("call", CALLS)
def test_names_as_in_paddle(program, call):
    made = CALLS[call](*program, "mine")
    assert made.name == "mine.tmp_0"
    assert CALLS[call](*program, "mine").name.startswith("mine.tmp_") and made.name == "mine.tmp_0"


@pytest.mark.parametrize("call", WHOLE)
def test_names_without_a_number(program, call):
    assert WHOLE[call](*program, "mine").name == "mine"


def test_lists_of_results(program):
    assert [one.name for one in paddle.split(program[0], 2, name="mine")] == ["mine.tmp_0", "mine.tmp_1"]


def test_results_are_fetched_by_name(program):
    F.cross_entropy(paddle.scale(program[0], 2.0, name="twice"), paddle.full([4, 1], 1, "int64"), name="loss")
    x = np.random.RandomState(0).randn(4, 4).astype("float32")
    twice, = paddle.static.Executor().run(feed={"x": x}, fetch_list=["twice.tmp_0"])
    np.testing.assert_array_equal(twice, x * 2)


def test_what_has_a_name_keeps_it(program):
    x, _ = program
    assert F.dropout(x, 0.0, name="mine").name == "x"
    y = paddle.exp(x)
    before = y.name
    assert F.dropout(y, 0.0, name="mine") is not y or y.name == before
    assert paddle.static.create_parameter([2], "float32", name="weight").name == "weight"


def test_eager_calls_ignore_it():
    assert F.softmax(paddle.ones([2]), name="mine").tolist() == [0.5, 0.5]
