"""paddle.cost_model, autograd.ir_backward, Tensor.grad_fn's objects, and variables' members in dynamic mode."""
import gc

import numpy as np
import pytest

import proa as paddle
from proa.autograd import ir_backward
from proa.cost_model import cost_model


@pytest.fixture
def static():
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        yield paddle.static
    paddle.disable_static()


def test_costs_of_a_program(capsys):
    model = paddle.cost_model.CostModel()
    try:
        startup, main = model.build_program()
        assert "main program is:" in capsys.readouterr().out
        costs = model.profile_measure(startup, main, "cpu")
        with pytest.raises(ValueError, match="gpu"):
            model.profile_measure(startup, main, "gpu:7")
    finally:
        paddle.disable_static()
    assert paddle.get_device() == "cpu" and costs["sgd_step"] > 0 and all(value >= 0 for value in costs.values())


def test_costs_of_operators(monkeypatch):
    table = cost_model._measured()
    monkeypatch.setattr(cost_model, "_measured", lambda: {op: table[op] for op in ("relu", "matmul", "elementwise_add")})
    model = paddle.cost_model.CostModel()
    rows = model.static_cost_data()
    assert {row["op"] for row in rows} == {"relu", "matmul", "elementwise_add"} and rows[0]["device"] == "cpu"
    forward, backward = (model.get_static_op_time("matmul", forward=f) for f in (True, False))
    assert 0 < forward["op_time"] and 0 < backward["op_time"] and "float32, shape: [256, 256]" in forward["config"]
    assert model.get_static_op_time("relu", dtype="int8") == model.get_static_op_time("none") == {}
    with pytest.raises(ValueError, match="op_name"):
        model.get_static_op_time(None)


def test_every_operator_of_the_table_runs():
    for op, (function, shapes) in cost_model._measured().items():
        assert cost_model._entry(op, function, [tuple(min(n, 8) if len(s) == 2 and op != "layer_norm" else n for n in s) for s in shapes],
                                 "float32"), op


def test_gradients_under_the_second_name(static):
    x = static.data("x", [3])
    x.stop_gradient = False
    unused = static.data("unused", [1])
    unused.stop_gradient = False
    y = (x * x).sum()
    (gradient,) = ir_backward.calc_gradient(y, x, None, set())
    helped = ir_backward.calc_gradient_helper([y], [x], [None], set())
    assert list(helped) == ["x"]
    assert ir_backward.grad(y, [x, unused], allow_unused=True)[1] is None
    with pytest.raises(ValueError, match="no gradient reaches unused"):
        ir_backward.grad(y, [x, unused])
    with pytest.raises(TypeError, match="calc_gradient: inputs must be variables of a program, got int"):
        ir_backward.calc_gradient(y, 3, None, None)
    found = static.Executor().run(feed={"x": np.float32([1, 2, 3]), "unused": np.float32([0])}, fetch_list=[gradient, helped["x"][0]])
    np.testing.assert_array_equal(found, [[2, 4, 6]] * 2)


def test_nodes_outlive_their_tensors():
    x = paddle.ones([2])
    x.stop_gradient = False
    node = (x * 2).sum().grad_fn
    before = node.next_functions[0]
    assert before == node.next_functions[0] and before != node and len({before, node.next_functions[0]}) == 1
    del x
    gc.collect()
    assert before.next_functions[0].name() == "GradNodeAccumulation" and before.next_functions[0].next_functions == []
    with pytest.raises(TypeError):
        type(node)()


def test_node_of_a_function_of_ones_own():
    class Twice(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            return dy * 2
    x = paddle.ones([2])
    x.stop_gradient = False
    y = Twice.apply(x)
    assert y.grad_fn.name() == "GradNodePyLayer" and y.grad_fn.next_functions == [x.grad_fn]
    (y * 1).sum().backward()
    assert y.grad_fn.name() == "GradNodePyLayer" and x.grad.tolist() == [2, 2]


def test_eager_tensors_have_no_members_of_variables():
    x = paddle.ones([2])
    assert not any(hasattr(x, name) for name in ("append", "pop", "attr", "attr_names", "is_parameter"))
    assert callable(paddle.static.Variable.append) and isinstance(paddle.static.Variable.is_parameter, property)
