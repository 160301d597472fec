"""Programs of Paddle 1.x that are run operator by operator: control flow in `with` statements, sequences, attributes that are
fed; and what executors do with scopes and shapes. Expected values are NumPy's."""
import numpy as np
import pytest

import proa as paddle
from proa import fluid
from proa.fluid import layers


pytestmark = pytest.mark.usefixtures("program")


def run(feed, fetch, **options):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch, **options)


def sequences(lengths, width=3, seed=0):
    array = np.random.default_rng(seed).standard_normal((sum(lengths), width)).astype("float32")
    return fluid.create_lod_tensor(array, [lengths], fluid.CPUPlace()), np.split(array, np.cumsum(lengths)[:-1])


def test_while_carries_variables_and_arrays_and_has_a_gradient(program):
    x = layers.data("x", [4], append_batch_size=False, stop_gradient=False)
    i, end = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    array = layers.array_write(x, i)
    cond = layers.less_than(i, end)
    with layers.While(cond).block():
        last = layers.array_read(array, i)
        layers.increment(i)
        layers.array_write(last * x, i, array)
        layers.less_than(i, end, cond=cond)
    loss = layers.reduce_sum(layers.array_read(array, i))
    fluid.backward.append_backward(loss)
    value = np.array([1, 2, 3, -1], "float32")
    power, grad, count = run({"x": value}, [loss, "x@GRAD", layers.array_length(array)])
    assert np.allclose(power, (value ** 4).sum()) and np.allclose(grad, 4 * value ** 3) and count == 4


def test_functions_of_2_x_write_variables_from_outside_a_block():
    i, end = paddle.full([1], 0, "int64"), paddle.full([1], 10, "int64")
    total, x = paddle.full([1], 0.0), paddle.static.data("x", [1])
    cond = paddle.less_than(i, end)
    with paddle.static.nn.control_flow.While(cond).block():
        paddle.assign(total + x, total)
        assert paddle.increment(i, 2) is i
        paddle.assign(paddle.less_than(i, end), cond)
    number, found = run({"x": np.array([1.5], "float32")}, [i, total])
    assert number.tolist() == [10] and found.tolist() == [7.5]


def test_while_that_never_runs_passes_values_by():
    i, end = layers.fill_constant([1], "int64", 7), layers.fill_constant([1], "int64", 3)
    cond = layers.less_than(i, end)
    with layers.While(cond).block():
        layers.increment(i)
        layers.less_than(i, end, cond=cond)
    assert run({}, [i])[0] == 7


@pytest.mark.parametrize("step, rate", [(1.0, 0.1), (5.0, 0.2), (50.0, 0.3)])
def test_switch_runs_the_first_case_that_holds(step, rate):
    x = layers.data("step", [1], append_batch_size=False)
    out = layers.create_global_var([1], 0.0, "float32", persistable=True)
    with layers.Switch() as switch:
        with switch.case(x < 3.0):
            layers.assign(layers.fill_constant([1], "float32", 0.1), out)
        with switch.case(x < 10.0):
            layers.assign(layers.fill_constant([1], "float32", 0.2), out)
        with switch.default():
            layers.assign(layers.fill_constant([1], "float32", 0.3), out)
    assert np.allclose(run({"step": np.array([step], "float32")}, [out]), rate)


def test_if_else_sends_rows_two_ways():
    x = layers.data("x", [2])
    way = layers.IfElse(layers.reduce_sum(x, dim=1, keep_dim=True) > 0.0)
    with way.true_block():
        way.output(way.input(x) * 2.0)
    with way.false_block():
        way.output(way.input(x) - 1.0)
    value = np.array([[1, 1], [-2, 1], [0, 3], [-1, -1]], "float32")
    assert np.allclose(run({"x": value}, way())[0], np.where(value.sum(1, keepdims=True) > 0, value * 2, value - 1))


def test_static_rnn_sums_its_steps():
    x = layers.data("x", [5, 2, 3], append_batch_size=False, stop_gradient=False)
    rnn = layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        memory = rnn.memory(shape=[-1, 3], batch_ref=now, init_value=1.0)
        total = memory + now
        rnn.update_memory(memory, total)
        rnn.step_output(total)
    out = rnn()
    fluid.backward.append_backward(layers.reduce_sum(out))
    value = np.random.default_rng(1).standard_normal((5, 2, 3)).astype("float32")
    found, grad = run({"x": value}, [out, "x@GRAD"])
    assert np.allclose(found, 1 + np.cumsum(value, 0), atol=1e-6)
    assert np.allclose(grad, np.arange(5, 0, -1)[:, None, None] * np.ones((5, 2, 3)))


def test_dynamic_rnn_takes_sequences_of_any_length():
    x = layers.data("x", [3], lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        memory = rnn.memory(shape=[3], value=0.0)
        total = memory + now
        rnn.update_memory(memory, total)
        rnn.output(total)
    tensor, parts = sequences([2, 4, 1])
    out, last = run({"x": tensor}, [rnn(), layers.sequence_last_step(rnn())], return_numpy=False)
    assert out.recursive_sequence_lengths() == [[2, 4, 1]]
    assert np.allclose(np.array(out), np.concatenate([np.cumsum(p, 0) for p in parts]), atol=1e-6)
    assert np.allclose(np.array(last), [p.sum(0) for p in parts], atol=1e-6)


def test_dynamic_rnn_trains_a_layer():
    paddle.seed(0)
    x = layers.data("x", [3], lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        memory = rnn.memory(shape=[4])
        hidden = layers.fc([now, memory], 4, act="tanh")
        rnn.update_memory(memory, hidden)
        rnn.output(hidden)
    loss = layers.mean(layers.square(layers.sequence_last_step(rnn()) - 0.5))
    fluid.optimizer.SGD(0.2).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    tensor, _ = sequences([2, 4, 1, 3])
    losses = [float(np.asarray(exe.run(feed={"x": tensor}, fetch_list=[loss])[0]).reshape(-1)[0]) for _ in range(12)]
    assert losses[-1] < 0.6 * losses[0]


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("reverse", [False, True])
def test_dynamic_lstm_and_gru_compute_each_sequence_alone(reverse):
    x = layers.data("x", [8], lod_level=1)
    g = layers.data("g", [6], lod_level=1)
    hidden, cell = layers.dynamic_lstm(x, 8, use_peepholes=False, is_reverse=reverse)
    state = layers.dynamic_gru(g, 2, is_reverse=reverse)
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    (tensor, parts), (gates, rows) = sequences([3, 1, 2], 8), sequences([3, 1, 2], 6, 5)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    found = [np.array(one) for one in exe.run(feed={"x": tensor, "g": gates}, fetch_list=[hidden, cell, state],
                                              return_numpy=False)]
    w, b, wg, bg = (np.array(fluid.global_scope().find_var(n).get_tensor()) for n in names)
    expected = [[], [], []]
    for part, row in zip(parts, rows):
        h, c, s = np.zeros(2), np.zeros(2), np.zeros(2)
        steps = [[], [], []]
        for one, other in zip(part[::-1] if reverse else part, row[::-1] if reverse else row):
            new, i, f, o = np.split(one + b[0] + h @ w, 4)
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(new)
            h = _sigmoid(o) * np.tanh(c)
            flat, other = wg.reshape(-1), other + bg[0]
            u, r = np.split(_sigmoid(other[:4] + s @ flat[:8].reshape(2, 4)), 2)
            s = u * np.tanh(other[4:] + (r * s) @ flat[8:].reshape(2, 2)) + (1 - u) * s
            for into, value in zip(steps, (h, c, s)):
                into.append(value)
        for into, values in zip(expected, steps):
            into += values[::-1] if reverse else values
    for one, other in zip(found, expected):
        assert np.allclose(one, other, atol=1e-5)


def test_an_axis_may_be_fed(program):
    block = program.global_block()
    x, axis = layers.data("x", [2, 3], append_batch_size=False, stop_gradient=False), layers.data("axis", [1], False, "int32")
    out = block.create_var(name="out", shape=[2, 1, 3], dtype="float32", stop_gradient=False)
    block.append_op("unsqueeze2", {"X": x, "AxesTensor": axis}, {"Out": out, "XShape": block.create_var(name="xshape")}, {})
    loss = layers.reduce_sum(out * out)
    fluid.backward.append_backward(loss)
    value = np.arange(6, dtype="float32").reshape(2, 3)
    for at in (0, 1, 2):
        found, grad = run({"x": value, "axis": np.array([at], "int32")}, [out, "x@GRAD"])
        assert found.shape == np.expand_dims(value, at).shape and np.allclose(grad, 2 * value)


def test_a_fed_variable_that_is_persistable_stays_in_the_scope():
    x = layers.data("x", [3], append_batch_size=False)
    x.persistable = True
    y = x * 2.0
    assert np.allclose(run({"x": np.ones(3, "float32")}, [y]), 2)
    fluid.global_scope().find_var("x").get_tensor()._set_float_element(1, 5.0)
    assert np.allclose(run({}, [y])[0], [2, 10, 2])


def test_layers_data_takes_values_of_another_rank():
    x = layers.data("x", [2, 3])  # [-1, 2, 3]
    y = layers.reduce_sum(layers.relu(x))
    value = np.array([[1, -2, 3], [4, 5, -6]], "float32")
    for fed in (value, value[None], np.stack([value, value])):
        assert np.allclose(run({"x": fed}, [y])[0], fed[fed > 0].sum())


def test_an_operator_may_write_what_is_fed(program):
    x = layers.data("x", [1], append_batch_size=False)
    layers.increment(x)
    assert np.allclose(run({"x": np.array([4.0], "float32")}, [x * 1.0, "x"]), 5)


def test_eager_tensors_carry_sequences():
    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(np.arange(6, dtype="float32").reshape(6, 1))
        x.value().get_tensor().set_recursive_sequence_lengths([[2, 4]])
        out, index = paddle.Tensor(), paddle.Tensor()
        fluid.layer_helper.LayerHelper("sequence_pool").append_op(
            "sequence_pool", {"X": [x]}, {"Out": [out], "MaxIndex": [index]}, {"pooltype": "SUM"})
        assert out.numpy().reshape(-1).tolist() == [1, 14]


def test_crop_by_tensors():
    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(np.arange(12, dtype="float32").reshape(3, 4))
        out = paddle.Tensor()
        fluid.layer_helper.LayerHelper("crop_tensor").append_op(
            "crop_tensor", {"X": [x], "Shape": [paddle.to_tensor([2, 2])], "Offsets": [paddle.to_tensor([1, 1])]},
            {"Out": [out]}, {})
        assert out.numpy().tolist() == [[5, 6], [9, 10]]


def test_a_late_program_is_not_saved(program, tmp_path):
    i = layers.fill_constant([1], "int64", 0)
    cond = layers.less_than(i, layers.fill_constant([1], "int64", 3))
    with layers.While(cond).block():
        layers.increment(i)
    with pytest.raises(NotImplementedError, match="Paddle 1.x"):
        paddle.static.save_inference_model(str(tmp_path / "m"), [], [i], fluid.Executor())
    with pytest.raises(NotImplementedError, match="Paddle 1.x"):
        paddle.static.save(program, str(tmp_path / "m"))


@pytest.mark.parametrize("make", [layers.GRUCell, layers.LSTMCell])
def test_cells_of_fluid_run_over_sequences(make):
    x = layers.data("x", [5, 3])
    cell = make(4)
    assert cell.state_shape == ([4] if make is layers.GRUCell else [[4], [4]])
    out, _ = layers.rnn(cell, x)
    value = np.random.default_rng(2).standard_normal((2, 5, 3)).astype("float32")
    found = run({"x": value}, [out])[0]
    assert found.shape == (2, 5, 4) and np.abs(found).max() < 1
    with pytest.raises(TypeError):
        make(4, dtype="int32")


def test_basic_decoder_takes_inputs_from_its_helper():
    value = np.random.default_rng(3).standard_normal((2, 3, 4)).astype("float32")
    with fluid.dygraph.guard():
        x, length = paddle.to_tensor(value), paddle.to_tensor([3, 2])
        cell = layers.GRUCell(4)
        decoder = layers.BasicDecoder(cell, layers.TrainingHelper(x, length))
        outputs, _ = layers.dynamic_decode(decoder, inits=cell.get_initial_states(x))
        assert outputs.cell_outputs.shape == [2, 3, 4]
        alone, _ = layers.rnn(cell, x)
        assert np.allclose(outputs.cell_outputs.numpy()[0], alone.numpy()[0], atol=1e-6)
        assert (outputs.sample_ids.numpy()[0] == alone.numpy()[0].argmax(-1)).all()


def test_layers_of_fluid_have_their_parameters_as_properties():
    with fluid.dygraph.guard():
        layer = fluid.dygraph.Linear(3, 2, bias_attr=False)
        assert isinstance(fluid.dygraph.Linear.weight, property) and layer.bias is None
        assert layer.weight is dict(layer.named_parameters())["weight"] and len(layer.parameters()) == 1


def test_im2sequence_makes_a_sequence_of_each_image():
    x = layers.data("x", [2, 3, 4])
    out = layers.im2sequence(x, filter_size=[2, 2], stride=[1, 2])
    value = np.arange(48, dtype="float32").reshape(2, 2, 3, 4)
    found = run({"x": value}, [out], return_numpy=False)[0]
    expected = [value[n, :, i:i + 2, j:j + 2].reshape(-1) for n in range(2) for i in range(2) for j in (0, 2)]
    assert found.recursive_sequence_lengths() == [[4, 4]] and np.allclose(np.array(found), expected)


def test_a_clone_knows_which_inputs_want_gradients(program):
    x = layers.data("x", [3], append_batch_size=False)
    x.stop_gradient, x.persistable = False, True
    y = x * x * x
    copy = program.clone()
    block = copy.global_block()
    grad, = fluid.gradients(block.var(y.name), block.var("x"))
    value = np.array([1, 2, -1], "float32")
    assert np.allclose(fluid.Executor().run(copy, feed={"x": value}, fetch_list=[grad])[0], 3 * value ** 2)


@pytest.mark.parametrize("pick, expected", [(1.0, 6.0), (-1.0, -3.0)])
def test_functions_of_layers_in_branches(pick, expected):
    x = layers.data("x", [3], append_batch_size=False)
    out = layers.cond(layers.reduce_sum(x) > 0.0, lambda: layers.scale(x, 2.0),
                      lambda: layers.elementwise_mul(x, layers.fill_constant([3], "float32", 1.0)))
    assert run({"x": np.full(3, pick, "float32")}, [layers.reduce_sum(out)])[0] == expected


def test_a_learning_rate_may_be_fed():
    x, rate = layers.data("x", [2], append_batch_size=False), fluid.data("rate", [1], "float32")
    w = layers.create_parameter([2], "float32", default_initializer=fluid.initializer.Constant(1.0))
    fluid.optimizer.SGD(learning_rate=rate).minimize(layers.reduce_sum(w * x))
    for step, expected in ((0.5, 0.0), (0.25, 0.5)):
        feed = {"x": np.array([2.0, 2.0], "float32"), "rate": np.array([step], "float32")}
        assert run(feed, [w])[0].tolist() == [expected] * 2


def test_layers_data_takes_values_of_another_dtype():
    x, label = layers.data("x", [4]), layers.data("label", [1])
    wide = run({"x": np.full((2, 4), 0.1)}, [layers.reduce_mean(x)])[0]
    assert wide.dtype == np.float64 and abs(wide - 0.1) < 1e-15
    loss = layers.softmax_with_cross_entropy(x, label)
    feed = {"x": np.eye(2, 4, dtype="float32"), "label": np.array([[0], [1]])}
    assert np.allclose(run(feed, [loss])[0], np.log(np.e + 3) - 1)


def test_a_tensor_of_a_scope_gets_memory_of_its_dims():
    tensor = fluid.global_scope().var("plain").get_tensor()
    tensor._set_dims([2, 3])
    for allocate, dtype in ((tensor._alloc_int, "int32"), (tensor._alloc_float, "float32"), (tensor._alloc_double, "float64")):
        allocate(fluid.CPUPlace())
        assert np.array(tensor).dtype == dtype and tensor._get_dims() == [2, 3]
    held = fluid.global_scope().var("number")
    held.set_int(7)
    assert held.is_int() and not held.is_float() and held.get_int() == 7


@pytest.mark.parametrize("rows", [4, -1])
def test_expand_as_repeats_to_another_shape(rows):
    x, target = (fluid.data(name, [rows, n]) for name, n in (("x", 3), ("target", 6)))
    out = layers.expand_as(x, target)
    value = np.arange(12, dtype="float32").reshape(4, 3)
    assert np.array_equal(run({"x": value, "target": np.zeros((4, 6), "float32")}, [out])[0], np.tile(value, (1, 2)))


def test_mixed_precision_under_its_old_name():
    from proa.fluid.contrib.mixed_precision import amp_nn, decorate, decorator, fp16_lists
    assert decorate is paddle.static.amp.decorate is decorator.decorate
    assert fp16_lists.AutoMixedPrecisionLists is paddle.static.amp.AutoMixedPrecisionLists
    x, scale = layers.data("x", [2], append_batch_size=False), layers.data("scale", [1], append_batch_size=False)
    grads, found = amp_nn.check_finite_and_unscale([x * 1.0], scale)
    given = {"x": np.array([4.0, np.inf], "float32"), "scale": np.array([2.0], "float32")}
    assert run(given, [found])[0].item() and not run({**given, "x": np.ones(2, "float32")}, [found])[0].item()


def test_functions_of_layers_change_a_loops_variables():
    """increment changes its argument in place, which the body returns."""
    i, end = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 4)
    x = layers.data("x", [2], append_batch_size=False)

    def body(i, x):
        x = layers.scale(x, 2.0)
        return [layers.increment(i), x]
    count, doubled = layers.while_loop(lambda i, x: layers.less_than(i, end), body, [i, x])
    found = run({"x": np.array([1.0, 3.0], "float32")}, [count, doubled])
    assert found[0] == 4 and found[1].tolist() == [16.0, 48.0]
