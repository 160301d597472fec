"""paddle.fluid: names of 2.0 over operators that are called by their type, at once and in programs."""
import numpy as np
import pytest

import proa as paddle
import proa.fluid as fluid
from proa import _C_ops, _legacy_C_ops
from proa.fluid.op import Operator, OpProtoHolder


def run(fetch, feed=None):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed or {}, fetch_list=fetch)


def test_one_dim_arrays():
    paddle.set_flags({"FLAGS_set_to_1d": True})
    try:
        assert paddle.get_flags("FLAGS_set_to_1d") == {"FLAGS_set_to_1d": True}
        assert paddle.to_tensor(3.0).numpy().shape == (1,) and paddle.to_tensor(3.0).shape == []
    finally:
        paddle.set_flags({"FLAGS_set_to_1d": False})
    assert paddle.to_tensor(3.0).numpy().shape == ()


def test_random_seed_of_the_default_program_fixes_initializers():
    """As in Paddle, eagerly too."""
    main = paddle.static.default_main_program()
    main.random_seed = 7
    try:
        one, two = (paddle.nn.Linear(3, 4).weight.numpy() for _ in range(2))
        assert (one == two).all()
    finally:
        main.random_seed = 0
    assert (paddle.nn.Linear(3, 4).weight.numpy() != one).any()


def test_schedules_in_programs_are_those_of_dynamic_mode():
    layers = fluid.layers
    makes = [lambda: layers.exponential_decay(0.1, 2, 0.5), lambda: layers.natural_exp_decay(0.1, 2, 0.5, True),
             lambda: layers.inverse_time_decay(0.1, 2, 0.5), lambda: layers.polynomial_decay(0.1, 3, 0.01, 2.0),
             lambda: layers.polynomial_decay(0.1, 3, 0.01, 1.0, True), lambda: layers.piecewise_decay([2, 4], [0.3, 0.2, 0.1]),
             lambda: layers.cosine_decay(0.1, 2, 5), lambda: layers.noam_decay(4, 3),
             lambda: layers.linear_lr_warmup(0.1, 4, 0.0, 0.1)]
    for make in makes:
        with fluid.dygraph.guard():
            schedule = make()
            expected = [float(schedule()) for _ in range(6)]
        paddle.enable_static()
        try:
            main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
            with fluid.program_guard(main, startup), fluid.scope_guard(scope):
                rate = make()
                run = fluid.Executor()
                run.run(startup)
                found = [run.run(main, fetch_list=[rate])[0].item() for _ in range(6)]
        finally:
            paddle.disable_static()
        start = 1 if make is makes[-1] else 0  # the warm-up of dynamic mode begins one step later
        assert np.allclose(found[start:], expected[:len(found) - start], rtol=1e-5), (found, expected)


def test_every_module_can_be_imported():
    import importlib
    import pkgutil
    for module in pkgutil.walk_packages(fluid.__path__, "proa.fluid."):
        importlib.import_module(module.name)


def test_a_network_of_the_time_learns_in_a_program(program):
    x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rows = np.random.RandomState(0).rand(32, 2).astype("float32")
    feed = {"x": rows, "y": rows.sum(1, keepdims=True)}
    losses = [float(exe.run(feed=feed, fetch_list=[loss])[0].reshape(-1)[0]) for _ in range(200)]
    assert losses[-1] < 0.05 * losses[0]


def test_a_network_of_the_time_learns_at_once():
    with fluid.dygraph.guard():
        net = fluid.dygraph.Linear(2, 1)
        opt = fluid.optimizer.SGDOptimizer(0.1, parameter_list=net.parameters())
        rows = np.random.RandomState(0).rand(32, 2).astype("float32")
        x, y = fluid.dygraph.to_variable(rows), fluid.dygraph.to_variable(rows.sum(1, keepdims=True))
        losses = []
        for _ in range(200):
            loss = fluid.layers.mean(fluid.layers.square_error_cost(net(x), y))
            loss.backward()
            opt.minimize(loss)
            net.clear_gradients()
            losses.append(float(loss))
    assert losses[-1] < 0.05 * losses[0]


def both(make, *arrays):
    """The result of make on arrays at once, and in a program."""
    with fluid.dygraph.guard():
        at_once = make(*[fluid.dygraph.to_variable(a) for a in arrays]).numpy()
    paddle.enable_static()
    try:
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            given = [fluid.data(f"x{i}", a.shape, str(a.dtype)) for i, a in enumerate(arrays)]
            built = fluid.Executor(fluid.CPUPlace()).run(feed={f"x{i}": a for i, a in enumerate(arrays)},
                                                         fetch_list=[make(*given)])[0]
    finally:
        paddle.disable_static()
    np.testing.assert_array_equal(at_once, built)
    return at_once


A = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.mark.parametrize("make, arrays, expected", [
    (lambda x: fluid.layers.reduce_sum(x, dim=1, keep_dim=True), [A], A.sum(1, keepdims=True)),
    (lambda x: fluid.layers.reduce_mean(x), [A], [2.5]),
    (lambda x: fluid.layers.reshape(x, [0, -1, 1]), [A], A.reshape(2, 3, 1)),
    (lambda x, y: fluid.layers.elementwise_add(x, y, axis=0), [A, np.float32([10, 20])], A + [[10], [20]]),
    (lambda x, y: fluid.layers.matmul(x, y, transpose_y=True, alpha=2.0), [A, A], 2 * A @ A.T),
    (lambda x: fluid.layers.scale(x, 2.0, 1.0, bias_after_scale=False), [A], 2 * (A + 1)),
    (lambda x: fluid.layers.topk(x, 1)[1], [A], [[2], [2]]),
    (lambda x: fluid.layers.leaky_relu(x), [-A], -0.02 * A),
    (lambda x: fluid.layers.pad(x, [0, 1, 0, 0], 7.0), [A], np.pad(A, ((0, 1), (0, 0)), constant_values=7)),
    (lambda x: fluid.layers.concat([x, x], axis=1), [A], np.concatenate([A, A], 1)),
    (lambda x: fluid.layers.less_than(x, x), [A], np.zeros((2, 3), bool)),
])
def test_layers_agree_at_once_and_in_programs(make, arrays, expected):
    np.testing.assert_allclose(both(make, *arrays), expected, rtol=1e-6)


def test_operators_by_type_have_gradients():
    x = paddle.to_tensor(A, stop_gradient=False)
    out, _ = _legacy_C_ops.reshape2(x, None, "shape", [3, 2])
    _legacy_C_ops.reduce_sum(_legacy_C_ops.square(out), "reduce_all", True).backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * A)


def test_attributes_of_operators_in_their_order():
    x = paddle.to_tensor(A)
    for sorted_, order in (_C_ops.argsort(x, 0, True), _C_ops.argsort(x, "axis", 0, "descending", True)):
        np.testing.assert_array_equal(order.numpy(), np.argsort(-A, 0))
        np.testing.assert_array_equal(sorted_.numpy(), -np.sort(-A, 0))
    with pytest.raises(TypeError, match="at most 2 attributes .axis, descending., got 3"):
        _C_ops.argsort(x, 0, True, 1)
    with pytest.raises(ValueError, match="has not been registered"):
        _C_ops.no_such_op(x)


def test_an_operator_reads_and_writes_a_scope():
    scope = fluid.Scope()
    scope.var("X").get_tensor().set(A, fluid.CPUPlace())
    Operator("scale", X="X", Out="Out", scale=3.0).run(scope, fluid.CPUPlace())
    np.testing.assert_array_equal(np.array(scope.find_var("Out").get_tensor()), 3 * A)


def test_slots_of_operators():
    proto = OpProtoHolder.instance().get_op_proto("reshape2")
    assert [s.name for s in proto.outputs] == ["Out", "XShape"] and proto.outputs[1].intermediate
    assert next(s for s in OpProtoHolder.instance().get_op_proto("concat").inputs if s.name == "X").duplicable
    with pytest.raises(ValueError, match="no_such_op"):
        OpProtoHolder.instance().get_op_proto("no_such_op")


def test_wrong_calls_of_operators_are_typed_errors():
    x = paddle.to_tensor(A)
    with pytest.raises(NotImplementedError, match="pyramid_hash"):
        paddle._core.call("pyramid_hash", {"X": [x]}, {"Out": [paddle._core.Tensor()]}, {})
    with pytest.raises(ValueError, match=r"similarity_focus: x is float32\[2, 3\]"):
        fluid.layers.similarity_focus(x, 1, [0])
    with pytest.raises(TypeError, match="expected a Tensor"):
        paddle._core.call("relu", {"X": [3]}, {"Out": [paddle._core.Tensor()]}, {})
    with pytest.raises(ValueError, match="X is missing"):
        paddle._core.call("relu", {}, {"Out": [paddle._core.Tensor()]}, {})


def test_a_variable_that_no_operator_makes_is_fed(program):
    block = fluid.default_main_program().global_block()
    x, out = block.create_var(name="x", shape=[2, 3], dtype="float32"), block.create_var(name="out")
    block.append_op(type="scale", inputs={"X": x}, outputs={"Out": out}, attrs={"scale": 2.0})
    np.testing.assert_array_equal(run(["out"], {"x": A})[0], 2 * A)


def test_variables_in_files(program, tmp_path):
    x = fluid.data("x", [None, 3])
    out = fluid.layers.fc(x, 2)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    before = exe.run(feed={"x": A}, fetch_list=[out])[0]
    for filename in (None, "all"):
        fluid.io.save_params(exe, str(tmp_path / "p"), filename=filename)
        exe.run(fluid.default_startup_program())
        fluid.io.load_params(exe, str(tmp_path / "p"), filename=filename)
        np.testing.assert_array_equal(exe.run(feed={"x": A}, fetch_list=[out])[0], before)


def test_nested_structures():
    nest = {"b": (1, [2]), "a": 3}
    assert paddle.utils.flatten(nest) == [3, 1, 2]
    assert paddle.utils.map_structure(lambda v: v + 1, nest) == {"b": (2, [3]), "a": 4}
    with pytest.raises(ValueError, match="Structure had 3"):
        paddle.utils.pack_sequence_as(nest, [1])


def test_functions_are_found_in_the_modules_that_paddle_has_them_in():
    assert paddle.tensor.math.logsumexp is paddle.logsumexp and paddle.tensor.stat.mean is paddle.mean
    for name in ("no_such_function", "Tensor_", "__path__"):
        with pytest.raises(AttributeError, match=name):
            getattr(paddle.tensor.math, name)


def test_variables_of_nested_lists():
    a, b = paddle.to_tensor([1.0]), paddle.to_tensor([2.0])
    found = fluid.dygraph.jit.extract_vars([a, (b, [a])])
    assert len(found) == 3 and found[1] is b
    with pytest.raises(TypeError, match="inputs"):
        fluid.dygraph.jit.extract_vars([a, 3])


def test_called_operators_share_offsets_of_sequences():
    for kind, given, attrs in (("hash", "int32", {"num_hash": 1, "mod_by": 97}), ("scale", "float32", {"scale": 2.0})):
        sequences = {0: (paddle.to_tensor([0, 2, 6]),)}  # the only reference
        x, made = paddle.ones([6, 1], given), paddle.zeros([1])
        assert paddle._core.call(kind, {"X": [x]}, {"Out": [made]}, attrs, sequences) == [True]
        others = [paddle.full([3], 7, "int64") for _ in range(50)]
        assert [level.tolist() for level in sequences[0]] == [[0, 2, 6]] and len(others) == 50
