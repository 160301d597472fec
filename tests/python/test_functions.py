"""Functions of the op table are Python functions to whoever looks: inspect, functools, pickle, mock, as Paddle's are.
What they are not is a Python frame on the way to the op."""
import copy
import functools
import inspect
import pickle
import subprocess
import sys
import textwrap
import types
import typing
from unittest import mock

import pytest

import proa as paddle
from proa import _core

F = paddle.nn.functional
SHOWN = [paddle.abs, paddle.add, paddle.matmul, paddle.sum, F.relu, F.conv2d, F.cross_entropy, paddle.Tensor.abs,
         paddle.Tensor.add_, paddle.concat, paddle.full]


@pytest.mark.parametrize("f", SHOWN, ids=lambda f: f.__name__)
def test_it_is_a_function(f):
    assert inspect.isfunction(f) and inspect.isroutine(f) and not inspect.isbuiltin(f) and not inspect.isclass(f)
    assert isinstance(f.__code__, types.CodeType) and f.__code__.co_name == f.__name__
    assert f.__closure__ is None and f.__kwdefaults__ is None and isinstance(f.__globals__, dict)
    assert inspect.getfullargspec(f).args == list(inspect.signature(f).parameters)
    assert typing.get_type_hints(f) == {} == f.__annotations__
    assert pickle.loads(pickle.dumps(f)) is f and copy.deepcopy(f) is f and copy.copy(f) is f
    assert repr(f).startswith(f"<function {f.__qualname__} at 0x")
    assert f.__doc__ and f.__module__.partition(".")[0] == "proa"


def test_every_function_of_the_table():
    for name, f in _core.api("_core").items():
        assert inspect.isfunction(f) and pickle.loads(pickle.dumps(f)) is f, name
        assert f.__code__.co_name == name and inspect.signature(f)


def test_names_defaults_and_attributes():
    assert paddle.add.__name__ == paddle.add.__qualname__ == "add"
    assert str(inspect.signature(paddle.add)) == "(x, y, name=None)" and paddle.add.__defaults__ == (None,)
    assert F.relu.__module__ == "proa.nn.functional" and F.relu.__name__ == "relu"
    paddle.add.mark = 3
    assert paddle.add.__dict__ == {"mark": 3}
    del paddle.add.mark
    assert not hasattr(paddle.add, "mark")


def test_methods_are_bound():
    x = paddle.to_tensor([-1.0, 2.0])
    assert inspect.ismethod(x.abs) and x.abs.__self__ is x and x.abs.__func__ is paddle.Tensor.abs
    assert paddle.Tensor.abs(x).tolist() == x.abs().tolist() == [1, 2]
    assert str(inspect.signature(x.add)) == "(y, name=None)"

    class Mine(paddle.Tensor):
        scaled = paddle.scale

    assert Mine(x).scaled(2.0).tolist() == [-2, 4]


def test_wrapped():
    @functools.wraps(paddle.abs)
    def mine(*args, **keywords):
        return paddle.abs(*args, **keywords) * 10

    assert mine.__name__ == "abs" and mine.__wrapped__ is paddle.abs
    assert inspect.signature(mine) == inspect.signature(paddle.abs)
    assert mine(paddle.to_tensor(-2.0)).item() == 20


def test_replaced():
    before = paddle.abs
    with mock.patch.object(paddle, "abs", lambda x: "mine"):
        assert paddle.abs(1) == "mine"
    assert paddle.abs is before
    with mock.patch("proa.nn.functional.relu", autospec=True) as fake:
        F.relu(1)
        with pytest.raises(TypeError):
            F.relu()
    fake.assert_called_once_with(1)
    with mock.patch.object(paddle.Tensor, "abs", lambda self: "mine"):
        assert paddle.ones([1]).abs() == "mine"
    assert paddle.to_tensor(-2.0).abs().item() == 2


# Changes that stay: in a process of their own.
CHANGES = """
    import proa as paddle

    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert paddle.sum(x).item() == 10
    order = paddle.sum.__code__.co_varnames.index("axis")
    defaults = list(paddle.sum.__defaults__)
    defaults[order - 1] = 0
    paddle.sum.__defaults__ = tuple(defaults)
    assert paddle.sum(x).tolist() == [4, 6]
    assert paddle.sum(x, 1).tolist() == paddle.sum(x, axis=1).tolist() == [3, 7]

    def other(x, name=None):
        return "other"

    paddle.abs.__code__ = other.__code__
    assert paddle.abs(x) == x.abs() == "other"
    paddle.abs.__doc__ = "Mine."
    assert paddle.abs.__doc__ == "Mine."
"""


def test_code_and_defaults_that_are_replaced_count():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(CHANGES)], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_no_frame_between():
    frames = []
    sys.setprofile(lambda frame, event, arg: frames.append(event))
    try:
        paddle.abs(paddle.Tensor)
    except ValueError:
        pass
    finally:
        sys.setprofile(None)
    assert "call" not in frames
    with pytest.raises(TypeError):
        type(paddle.abs)(paddle.abs.__code__, {})


@pytest.mark.parametrize("call, error, says", [
    (lambda x: F.celu(x, 0.0), ZeroDivisionError, "celu: alpha must not be 0, got 0"),
    (lambda x: F.elu_(x, alpha=-0.5), AssertionError, "elu_: alpha must be at least 0, got -0.5; use elu"),
    (lambda x: F.selu(x, scale=1.0), ValueError, "selu: scale must be above 1, got 1"),
    (lambda x: F.selu(x, alpha=-1), ValueError, "selu: alpha must be at least 0, got -1"),
    (lambda x: F.softshrink(x, -2), ValueError, "softshrink: threshold must be at least 0, got -2"),
], ids=["celu", "elu_", "selu-scale", "selu-alpha", "softshrink"])
def test_functions_of_the_op_table_check_their_numbers(call, error, says):
    x = paddle.to_tensor([-1.0, 2.0])
    with pytest.raises(error) as caught:
        call(x)
    assert str(caught.value) == says and x.tolist() == [-1.0, 2.0]
    assert F.elu(x, -0.5).tolist() != [-1.0, 2.0] and F.celu(x, -1.0).shape == [2], "out of place, or of another sign"


def test_tuple_for_a_tensor():
    """Eager Paddle takes the first entry of a tuple for a Tensor argument (models pass on what a layer returned with its cache)."""
    x, w = paddle.ones([2, 3]), paddle.ones([3, 4])
    assert paddle.nn.functional.linear((x, w), w).shape == [2, 4]
    assert paddle.add(x, (x,)).tolist() == (2 * x).tolist()
    for bad in ([x], (), ((x,),), (1, x)):
        with pytest.raises(ValueError, match="argument x: expected a Tensor"):
            paddle.abs(bad)


def test_in_place_the_operand_takes_the_dtype_of_x():
    y = paddle.to_tensor([2.0, 3.0], dtype="float64", stop_gradient=False)
    x = paddle.to_tensor([1.5, 2.0], stop_gradient=False)
    h = x * 2
    h.multiply_(y)
    h.sum().backward()
    assert h.dtype == paddle.float32 and x.grad.tolist() == [4.0, 6.0]
    assert y.grad.dtype == paddle.float64 and y.grad.tolist() == [3.0, 4.0]
    whole = paddle.to_tensor([1, 2])
    with pytest.raises(ValueError, match="convert one with cast"):
        whole.add_(paddle.to_tensor([1.5, 2.5]))
    assert whole.tolist() == [1, 2]


@pytest.mark.parametrize("padding, rows, columns", [(-1, slice(1, -1), slice(1, -1)), ([-1, 0], slice(1, -1), slice(None)),
                                                    ([0, 0, -2, 0], slice(None), slice(2, None))])
def test_negative_paddings_of_poolings_crop(padding, rows, columns):
    x = paddle.arange(36.0).reshape([1, 1, 6, 6])
    for pool in (F.max_pool2d, F.avg_pool2d):
        assert pool(x, 2, padding=padding).tolist() == pool(x[:, :, rows, columns], 2).tolist()


def test_c_ops_take_what_python_functions_refuse():
    x = paddle.to_tensor([3, 1, 2]).astype("uint8")
    with pytest.raises(RuntimeError, match=r"\(NotFound\) sort: x is uint8; expected one of int32, int64, float32, float64"):
        paddle.sort(x)
    assert _core.sort(x, -1, False)[0].tolist() == [1, 2, 3] and _core.sum(x[:0], []).item() == 0

