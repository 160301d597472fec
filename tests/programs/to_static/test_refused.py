"""Refusals of to_static and their words, and what it takes all the same."""
import linecache
import random
import warnings

import numpy as np
import pytest

from nets import tensor
import proa as paddle
from proa.jit.dy2static.errors import ConversionError

nn = paddle.nn


def test_errors_name_the_users_line():
    def f(x):
        y = x + 1
        return paddle.reshape(y, [7, 7])  # the line

    with pytest.raises(ValueError) as caught:
        paddle.jit.to_static(f, full_graph=True)(tensor(3))
    text, note = str(caught.value), "\n".join(caught.value.__notes__)
    line = f.__code__.co_firstlineno + 2
    assert text.startswith("In transformed code:") and f'File "{__file__}", line {line}, in f' in text
    assert linecache.getline(__file__, line).strip() in text
    assert "_proa.call(paddle.reshape)(y, [7, 7])" in note
    frames, step = [], caught.tb
    while step:
        frames.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
        step = step.tb_next
    assert (__file__, line) in frames


def test_half_bound_names_are_explained():
    def f(x):
        if x.sum() > 0:  # the line
            y = x
        return y
    with pytest.raises(NameError) as caught:
        paddle.jit.to_static(f, full_graph=True)(tensor(3))
    assert f'line {f.__code__.co_firstlineno + 1}: give it a value before' in "\n".join(caught.value.__notes__)


def test_values_are_refused():
    for f in (lambda x: x.tolist(), lambda x: [1, 2][x.astype("int64").sum()],
              lambda x: x.item()):
        with pytest.raises((RuntimeError, TypeError, ConversionError)):
            paddle.jit.to_static(f, full_graph=True)(tensor(3))


def test_a_length_that_only_the_run_knows_is_named():
    spec = [paddle.static.InputSpec([None, 3], "float32")]
    with pytest.raises(ConversionError, match="give the axis a number in InputSpec"):
        paddle.jit.to_static(lambda x: paddle.split(x, x.shape[0])[0], input_spec=spec, full_graph=True).concrete_program


def test_numpy_of_a_variable_stands_for_it():
    def f(x, n):
        for i in range(n.numpy()[0]):
            x = x + i
        if x.numpy().mean() > 1:
            x = x * 2
        return float(x.numpy().sum())
    for n in (1, 4):
        assert paddle.jit.to_static(f)(tensor(2), paddle.to_tensor([n])) == f(tensor(2), paddle.to_tensor([n]))


def test_a_number_may_become_a_tensor_of_one_element():
    def f(n):
        last = 4
        for i in range(n):
            last = paddle.full([1], 2.5) * i
        return last
    assert paddle.jit.to_static(f)(paddle.to_tensor(3)).tolist() == [5.0]
    assert paddle.jit.to_static(f)(paddle.to_tensor(0)).tolist() == [4.0]


def test_casts_of_several_elements():
    x = paddle.to_tensor([0.5, 2.75])
    assert paddle.jit.to_static(lambda x: int(x))(x).tolist() == [0, 2]
    assert paddle.jit.to_static(lambda x: float(bool(x)))(x).tolist() == [1.0, 1.0]


def test_generators_are_refused():
    def f(x):
        yield x
    with pytest.raises(ConversionError, match="generator"):
        paddle.jit.to_static(f, full_graph=True)(tensor(1))


def test_fall_back():
    def f(x):
        return float(sum(x.tolist()))
    with pytest.raises(RuntimeError):
        paddle.jit.to_static(f, full_graph=True)(tensor(2))
    plain = paddle.jit.to_static(f)
    with pytest.warns(UserWarning, match="runs as plain Python"):
        assert isinstance(plain(tensor(2)), float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain(tensor(2))
    with pytest.raises(ValueError, match="runs as plain Python, since"):
        plain.concrete_program


def test_nested_functions_fall_back_with_one_warning():
    @paddle.jit.to_static
    def inner(x):
        return float(sum(x.tolist()))

    @paddle.jit.to_static
    def outer(x):
        return inner(x) + 1.0
    with pytest.warns(UserWarning, match="runs as plain Python") as told:
        assert outer(paddle.ones([2])) == 3.0
    assert [str(one.message).split()[1] for one in told] == ["outer"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert outer(paddle.ones([2])) == 3.0 and inner(paddle.ones([2])) == 2.0


def test_one_kind_of_call_that_falls_back_leaves_the_others_programs():
    def f(x, listed):
        return x.tolist() if listed else x * 2
    program = paddle.jit.to_static(f)
    with pytest.warns(UserWarning, match="runs as plain Python"):
        assert program(paddle.ones([2]), True) == [1.0, 1.0]
    assert program(paddle.ones([2]), False).tolist() == [2.0, 2.0]
    assert program(paddle.ones([2]), True) == [1.0, 1.0]
    assert len(program.program_cache.concrete_programs()) == 1


def test_a_failed_capture_draws_no_numbers():
    def f(x):
        return [random.random(), np.random.rand(), *x.tolist()]

    def seeded(function):
        random.seed(1)
        np.random.seed(1)
        return function(paddle.ones([1]))
    with pytest.warns(UserWarning, match="runs as plain Python"):
        assert seeded(paddle.jit.to_static(f)) == seeded(f)


def test_the_users_own_error_is_no_reason_to_fall_back():
    def f(x, y):
        return paddle.matmul(x, y)
    program = paddle.jit.to_static(f)
    with pytest.raises(ValueError, match="matmul"):
        program(tensor(2, 3), tensor(2, 3))
    program(tensor(2, 3), tensor(3, 2))
    assert len(program.program_cache.concrete_programs()) == 1
    with pytest.raises(ValueError, match="input_spec has 3 entries"):
        paddle.jit.to_static(f, input_spec=[paddle.static.InputSpec([2, 2])] * 3)(tensor(2, 2), tensor(2, 2))


def test_a_failed_capture_leaves_a_layer_as_it_was():
    class Counts(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1D(3)
            self.register_buffer("calls", paddle.zeros([1]))
            self.last = None

        def forward(self, x):
            self.calls = self.calls + 1
            self.last = self.norm(x)
            return sum(self.last.flatten().tolist())
    net, twin = Counts(), Counts()
    x = paddle.rand([4, 3])
    with pytest.warns(UserWarning, match="runs as plain Python"):
        paddle.jit.to_static(net)(x)
    twin(x)
    assert net.calls.tolist() == [1.0]
    assert net.norm._mean.tolist() == twin.norm._mean.tolist()
    assert net.last.tolist() == twin.last.tolist()


def test_a_list_in_a_layer_is_refused():
    class Keeps(nn.Layer):
        def __init__(self):
            super().__init__()
            self.seen = []

        def forward(self, x):
            self.seen.append(x * 2)
            return x
    net = paddle.jit.to_static(Keeps(), full_graph=True)
    with pytest.raises(ConversionError, match="Keeps.seen"):
        net(tensor(2))
    assert net.seen == []


def test_without_source():
    space = {}
    exec("def f(x):\n    return x + 1\ndef g(x):\n    return x if x.sum() > 0 else -x\n", space)
    with pytest.warns(UserWarning, match="captured as it is"):
        assert paddle.jit.to_static(space["f"])(paddle.ones([1])).tolist() == [2]
    with pytest.warns(UserWarning), pytest.raises(RuntimeError):
        paddle.jit.to_static(space["g"], full_graph=True)(paddle.ones([1]))


def test_two_lambdas_on_a_line():
    make = paddle.jit.to_static
    f, g = make(lambda x: x if x.sum() > 0 else -x), make(lambda x: x * 2 if x.sum() > 0 else x)
    assert f(-paddle.ones([1])).tolist() == [1] and g(paddle.ones([1])).tolist() == [2]


def test_text_of_a_variable_warns():
    @paddle.jit.to_static
    def described(x):
        return x, f"{x.sum()}"
    with pytest.warns(UserWarning, match="the text of a tensor is that of the program's variable"):
        described(paddle.ones([2]))
