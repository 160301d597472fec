"""Operators by their type in programs and on scopes, as Paddle's own tests of operators use them."""
import numpy as np
import pytest

import proa as paddle
from proa import fluid
from proa.fluid import core
from proa.fluid.op import Operator


@pytest.fixture(autouse=True)
def static():
    paddle.enable_static()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        yield
    paddle.disable_static()


def test_elements_of_a_scope_tensor_are_set_in_place():
    scope = core.Scope()
    x = scope.var("X").get_tensor()
    x.set(np.arange(6, dtype="float64").reshape(2, 3), core.CPUPlace())
    scope.var("Out")
    op = Operator("square", X="X", Out="Out")
    for value in (3.0, -4.0):
        x._set_double_element(4, value)
        op.run(scope, core.CPUPlace())
        assert x._get_double_element(4) == value
        assert np.array(scope.find_var("Out").get_tensor())[1, 1] == value * value
    with pytest.raises(IndexError):
        x._set_double_element(6, 1.0)


def test_rows_of_a_table_on_a_scope():
    scope = core.Scope()
    scope.var("Param").get_tensor().set(np.ones((5, 2), "float32"), core.CPUPlace())
    scope.var("LearningRate").get_tensor().set(np.array([2.0], "float32"), core.CPUPlace())
    grad = scope.var("Grad").get_selected_rows()
    grad.set_height(5)
    grad.set_rows([3, 0, 3])
    grad.get_tensor().set(np.full((3, 2), 0.25, "float32"), core.CPUPlace())
    assert grad.rows() == [3, 0, 3] and grad.height() == 5
    Operator("sgd", Param="Param", Grad="Grad", LearningRate="LearningRate", ParamOut="Param").run(scope, core.CPUPlace())
    assert np.array(scope.find_var("Param").get_tensor())[:, 0].tolist() == [0.5, 1, 1, 0.0, 1]
    again = scope.find_var("Grad").get_selected_rows()
    assert again.rows() == [3, 0, 3] and np.array(again.get_tensor()).shape == (3, 2)


def test_a_startup_program_takes_over_names_of_other_shapes():
    exe = fluid.Executor(core.CPUPlace())
    for width in (3, 5):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            w = paddle.static.create_parameter([2, width], "float32", name="shared_w")
        exe.run(startup)
        assert np.array(fluid.global_scope().find_var("shared_w").get_tensor()).shape == (2, width)
        assert exe.run(main, fetch_list=[w])[0].shape == (2, width)


def test_no_grad_set_takes_names_that_there_are_not_and_refuses_strings():
    x = fluid.data("x", [2, 2])
    x.stop_gradient = False
    loss = fluid.layers.mean(x)
    (_, grad), = fluid.backward.append_backward(loss, parameter_list=["x"], no_grad_set={"l", "t"})
    assert grad.shape == (2, 2)
    for wrong in ({"parameter_list": "x"}, {"no_grad_set": "x"}):
        with pytest.raises(TypeError, match="must be a"):
            fluid.backward.append_backward(loss, **wrong)


@pytest.mark.parametrize("make", [
    lambda **k: fluid.optimizer.FtrlOptimizer(0.1, **k), lambda **k: fluid.optimizer.LarsMomentumOptimizer(0.1, 0.9, **k),
    lambda **k: fluid.optimizer.DecayedAdagradOptimizer(0.1, **k),
    lambda **k: fluid.optimizer.DpsgdOptimizer(0.1, clip=100.0, sigma=0.0, **k)])
def test_optimizers_by_operator_agree_in_both_modes(make):
    data, first = np.linspace(0.1, 1, 6, dtype="float32").reshape(2, 3), np.full((3, 2), 0.5, "float32")
    x = fluid.data("x", [2, 3])
    w = paddle.static.create_parameter([3, 2], "float32", default_initializer=paddle.nn.initializer.Assign(first))
    make().minimize(fluid.layers.mean(fluid.layers.square(fluid.layers.mul(x, w))))
    exe = fluid.Executor(core.CPUPlace())
    exe.run(fluid.default_startup_program())
    for _ in range(3):
        exe.run(feed={"x": data})
    trained = np.array(fluid.global_scope().find_var(w.name).get_tensor())
    with fluid.dygraph.guard():
        eager = paddle.create_parameter([3, 2], "float32", default_initializer=paddle.nn.initializer.Assign(first))
        optimizer = make(parameter_list=[eager])
        for _ in range(3):
            loss = paddle.mean(paddle.square(paddle.matmul(paddle.to_tensor(data), eager)))
            loss.backward()
            optimizer.minimize(loss)
            optimizer.clear_grad()
        np.testing.assert_allclose(eager.numpy(), trained, rtol=1e-5)
        assert np.abs(trained - first).max() > 1e-5


def test_composed_operators_name_what_is_wrong():
    block = fluid.default_main_program().global_block()
    x = fluid.data("image", [2, 3, 4, 4])
    out = block.create_var(dtype="float32")
    with pytest.raises(ValueError, match="space_to_depth: X has shape .*multiple of blocksize"):
        block.append_op(type="space_to_depth", inputs={"X": x}, outputs={"Out": out}, attrs={"blocksize": 2})
    with pytest.raises(NotImplementedError, match="functor 'cosine'"):
        block.append_op(type="fused_elemwise_activation", inputs={"X": x, "Y": x}, outputs={"Out": out},
                        attrs={"functor_list": ["elementwise_add", "cosine"]})


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_flow_to_made_variables_that_are_fed(dtype):
    program = fluid.Program()
    block = program.global_block()
    x, y = (block.create_var(name=name, shape=[2, 3], dtype=dtype) for name in "xy")
    stopped = block.create_var(name="stopped", shape=[2, 3], dtype=dtype, stop_gradient=True)
    out, total = block.create_var(name="out", dtype=dtype), block.create_var(name="total", dtype=dtype)
    block.append_op(type="elementwise_mul", inputs={"X": x, "Y": y}, outputs={"Out": out}, attrs={"axis": -1})
    block.append_op(type="elementwise_add", inputs={"X": out, "Y": stopped}, outputs={"Out": total}, attrs={"axis": -1})
    of_x, of_stopped = paddle.static.gradients([block.var("total")], [block.var("x"), block.var("stopped")])
    assert of_stopped is None
    a = np.arange(6).reshape(2, 3).astype(dtype) * (1 + 2j if dtype == "complex128" else 1)
    found, = fluid.Executor(core.CPUPlace()).run(program, feed={"x": a, "y": a + 1, "stopped": a}, fetch_list=[of_x])
    np.testing.assert_allclose(found, np.conj(a + 1))


def test_an_operand_is_converted_as_paddles_run_does():
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main, paddle.static.Program()):
            a, b, c = (paddle.static.data(name, [2], dtype) for name, dtype in
                       (("a", "int32"), ("b", "int64"), ("c", "complex64")))
            x = paddle.static.data("x", [2])
            block, found = main.global_block(), []
            for kind, left, right in (("less_than", a, b), ("elementwise_mul", x, c), ("elementwise_sub", c, x)):
                found.append(block.create_var(name=kind, dtype="bool" if kind == "less_than" else "complex64"))
                block.append_op(type=kind, inputs={"X": left, "Y": right}, outputs={"Out": found[-1]}, attrs={"axis": -1})
            feed = {"a": np.array([1, 5], "int32"), "b": np.array([3, 3]), "x": np.array([2, 3], "float32"),
                    "c": np.array([1j, 1 + 1j], "complex64")}
            less, product, difference = paddle.static.Executor().run(main, feed=feed, fetch_list=found)
    finally:
        paddle.disable_static()
    assert less.tolist() == [True, False]
    assert product.tolist() == [2j, 3 + 3j] and difference.tolist() == [-2 + 1j, -2 + 1j]


@pytest.mark.parametrize("equation,shapes", [
    ("i,jk->ik", [(2, 3), (3, 4)]), ("ij->ijk", [(2, 3)]), ("ij,jk->iq", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3)]),
    ("ij", [(2, 3), (3, 4)]), ("i1->i", [(2, 3)]), ("ij-", [(2, 3)]), ("ij->ii", [(2, 3)]), ("ij,kj->ik", [(2, 3), (3, 4)]),
    ("...i,j...->ij...", [(2, 3), (4, 5)]), ("", [(2, 3)]), ("abcdefghi,jklmnopqr->abcdefghijklmnopqr", [(1, ) * 9, (1, ) * 9]),
    ("ii,ij->j", [(2, 3), (4, 5)])])
def test_equations_that_do_not_fit(equation, shapes):
    block = fluid.default_main_program().global_block()
    given = [paddle.static.data(f"x{i}", list(shape), "float32") for i, shape in enumerate(shapes)]
    with pytest.raises(ValueError, match=r"\(InvalidArgument\) append_op: einsum: (einsum: equation|matmul: y has)"):
        block.append_op(type="einsum", inputs={"Operands": given}, outputs={"Out": [block.create_var(name="out", dtype="float32")]},
                        attrs={"equation": equation})


def fused(kind, inputs, attrs, out):
    """An operator's result, in a program of its own; Paddle has kernels of these for GPUs alone."""
    block = fluid.default_main_program().global_block()
    given = {slot: [fluid.data(slot, x.shape, str(x.dtype))] for slot, x in inputs.items()}
    made = block.create_var(name="made", dtype="float32")
    block.append_op(type=kind, inputs=given, outputs={out: [made]}, attrs=attrs)
    return fluid.Executor(core.CPUPlace()).run(feed=inputs, fetch_list=[made])[0]


def test_fused_softmax():
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 3, 4, 4)).astype("float32")
    mask = np.where(random.random((2, 1, 4, 4)) < 0.3, -1e4, 0).astype("float32")
    masked = np.exp(x + mask)
    np.testing.assert_allclose(fused("fused_softmax_mask", {"X": x, "Mask": mask}, {}, "Out"), masked / masked.sum(-1, keepdims=True),
                               rtol=1e-5, atol=1e-7)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        lower = np.tril(np.exp(x))
        np.testing.assert_allclose(fused("fused_softmax_mask_upper_triangle", {"X": x}, {}, "Out"), lower / lower.sum(-1, keepdims=True),
                                   rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["fused_dropout_add", "fused_bias_dropout_residual_layer_norm", "skip_layernorm", "view_shape"])
def test_fused_operators_in_tests(kind):
    x, y = np.random.default_rng(1).standard_normal((2, 3, 4, 8)).astype("float32")[:2]
    scale, bias = np.linspace(0.5, 2, 8, dtype="float32"), np.linspace(-1, 1, 8, dtype="float32")

    def normalized(v):
        return (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + 1e-3) * scale + bias
    given, attrs, out, expected = {
        "fused_dropout_add": ({"x": x, "y": y}, {"p": 0.25, "is_test": True, "mode": "downscale_in_infer"}, "out", x * 0.75 + y),
        "fused_bias_dropout_residual_layer_norm": (
            {"X": x, "Residual": y, "Bias": bias, "LnScale": scale, "LnBias": bias},
            {"dropout_rate": 0.5, "is_test": True, "dropout_implementation": "upscale_in_train", "ln_epsilon": 1e-3}, "Y",
            normalized(y + x + bias)),
        "skip_layernorm": ({"X": x, "Y": y, "Scale": scale, "Bias": bias}, {"epsilon": 1e-3, "begin_norm_axis": 2}, "Out", normalized(x + y)),
        "view_shape": ({"input": x}, {"dims": [12, 8]}, "out", x.reshape(12, 8)),
    }[kind]
    np.testing.assert_allclose(fused(kind, given, attrs, out), expected, rtol=1e-4, atol=1e-5)
