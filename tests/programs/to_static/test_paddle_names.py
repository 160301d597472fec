"""Modules of conversion under Paddle's names, and fluid's functions in converted code."""
import importlib
import sys

import numpy as np
import pytest

import proa as paddle
from proa import fluid

OLD = "proa.fluid.dygraph.dygraph_to_static"


def test_modules_of_2_0_are_those_of_jit():
    old = importlib.import_module(OLD)
    assert old.ProgramTranslator is paddle.jit.ProgramTranslator
    for name in ("program_translator", "error", "logging_utils", "convert_call_func", "loop_transformer"):
        assert importlib.import_module(f"{OLD}.{name}") is sys.modules[f"proa.jit.dy2static.{name}"]


def test_parts_of_paddles_transformation_refuse_in_words():
    from proa.jit.dy2static.loop_transformer import NameVisitor
    with pytest.raises(NotImplementedError, match="NameVisitor is part of Paddle's AST transformation"):
        NameVisitor(None)


def test_fluid_functions_run_in_converted_code():
    @fluid.dygraph.jit.declarative
    def f(x):
        x = fluid.dygraph.to_variable(x)
        i = fluid.layers.fill_constant(shape=[1], dtype="int32", value=0)
        while i < 5:
            i += 1
            x = fluid.layers.reshape(x, [3, 2]) + 1.0
        if fluid.layers.reduce_sum(x) > 0:
            x = fluid.layers.scale(x, 2.0)
        return x
    with fluid.dygraph.guard():
        got = f(np.ones([2, 3], "float32"))
    np.testing.assert_array_equal(got.numpy(), np.full([3, 2], 12, "float32"))
    assert not f.code.startswith("def f(x):\n    return")


def test_a_layer_with_statistics_runs_in_converted_code():
    with fluid.dygraph.guard():
        norm = fluid.dygraph.BatchNorm(3)
        eager = fluid.dygraph.BatchNorm(3)
        x = fluid.dygraph.to_variable(np.random.rand(2, 3, 4, 4).astype("float32"))
        np.testing.assert_allclose(paddle.jit.to_static(norm)(x).numpy(), eager(x).numpy(), atol=1e-5)
        np.testing.assert_allclose(norm._mean.numpy(), eager._mean.numpy(), atol=1e-6)
        assert abs(norm._mean.numpy()).max() > 0


def test_operators_of_a_block_are_called_in_converted_code():
    @paddle.jit.to_static
    def f(x):
        block = paddle.static.default_main_program().current_block()
        out = block.create_var(dtype="float32")
        block.append_op(type="scale", inputs={"X": x}, outputs={"Out": out}, attrs={"scale": 3.0})
        return out
    assert f(paddle.ones([2])).tolist() == [3.0, 3.0]


def test_logging(capsys, monkeypatch):
    from proa.jit.dy2static import logging_utils
    monkeypatch.setenv(logging_utils.VERBOSITY_ENV_NAME, "3")
    paddle.jit.set_verbosity(None)
    assert logging_utils.get_verbosity() == 3
    try:
        paddle.jit.set_verbosity(1, also_to_stdout=True)
        logging_utils.log(1, "told %d", 7)
        logging_utils.log(2, "not told")
        assert capsys.readouterr().out == "Dynamic-to-Static INFO: (Level 1) told 7\n"
        with pytest.raises(TypeError):
            paddle.jit.set_code_level(3.3)
        with pytest.raises(AssertionError):
            paddle.jit.set_verbosity(also_to_stdout=1)
    finally:
        paddle.jit.set_verbosity(0)
        paddle.jit.set_code_level(-1)


def test_errors_carry_the_users_lines(monkeypatch):
    from proa.jit.dy2static import error

    def inner(x):
        return paddle.reshape(x, [7, 7])

    def f(x):
        return inner(x)
    with pytest.raises(ValueError) as caught:
        paddle.jit.to_static(f, full_graph=True)(paddle.ones([2]))
    data = getattr(caught.value, error.ERROR_DATA)
    assert [line[2] for line in data.lines] == ["f", "inner"] and "In transformed code:" in str(caught.value)
    monkeypatch.setenv(error.DISABLE_ERROR_ENV_NAME, "1")
    with pytest.raises(ValueError) as caught:
        paddle.jit.to_static(lambda x: inner(x), full_graph=True)(paddle.ones([2]))
    assert "In transformed code:" not in str(caught.value)


def test_operators_as_functions():
    dy = paddle.jit.dy2static
    assert dy.convert_shape_compare(1, "<", 2, "<=", 3) is True
    assert dy.convert_shape_compare(1, ">", 2, "<=", lambda: 1 / 0) is False
    assert dy.choose_shape_attr_or_api([2, -1], [2, 7], 1) == 7
    assert dy.convert_logical_and(lambda: False, lambda: 1 / 0) is False
    assert dy.convert_ifelse(True, lambda a: a + 1, lambda b: b, (1,), (2,), ()) == 2
    assert dy.convert_var_dtype(paddle.ones([2]), "int").dtype == paddle.int32


def test_inputs_are_named_as_paddle_names_them():
    spec = paddle.static.InputSpec([None, 2])
    static = paddle.jit.to_static(lambda pair, table: pair[0] + table["x"],
                                  input_spec=[[spec, spec], {"x": spec, "y": [spec]}])
    assert [one.name for one in static.inputs] == ["pair_0", "pair_1", "x", "y_0"]


def test_programs_by_specs():
    def f(x, c=1):
        return x + c
    static, spec = paddle.jit.to_static(f), paddle.static.InputSpec([None, 2])
    one = static.get_concrete_program(spec)
    assert one is static.get_concrete_program(spec, 1) and static.get_concrete_program(spec, c=2) is not one
    assert len(static.program_cache) == len(static.program_cache.concrete_programs()) == 2
    assert static.program_cache.last()[1][0] is not one


def test_static_mode_is_refused():
    static = paddle.jit.to_static(lambda x: x + 1)
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", [2])
            for call in (lambda: static(x), lambda: static.concrete_program,
                         lambda: paddle.jit.ProgramTranslator().get_output(lambda y: y, x)):
                with pytest.raises(RuntimeError, match="only available in dynamic mode"):
                    call()
    finally:
        paddle.disable_static()
