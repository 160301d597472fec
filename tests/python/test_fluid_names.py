"""Habits of scripts of 2.0: loaders that generators feed, optimizers of fluid, flags, names inside dygraph.guard."""
import numpy as np
import pytest

import proa as paddle
from proa import fluid


def batches(count=3):
    def read():
        for i in range(count):
            yield np.full([2, 4], i, "float32"), np.full([2, 1], i, "int64")
    return read


def test_a_generator_feeds_a_loader_at_once():
    loader = paddle.io.DataLoader.from_generator(capacity=2, return_list=True)
    loader.set_batch_generator(batches())
    assert [float(x[0, 0]) for x, y in loader] == [0, 1, 2]
    loader.set_sample_generator(lambda: ((np.full([4], i, "float32"), i) for i in range(5)), batch_size=2, drop_last=False)
    assert [x.shape for x, _ in loader] == [[2, 4], [2, 4], [1, 4]]


def test_an_error_of_the_generator_comes_out():
    def read():
        yield np.zeros([2], "float32")
        raise KeyError("gone")
    loader = fluid.io.DataLoader.from_generator(capacity=2, return_list=True)
    loader.set_batch_generator(read)
    found = iter(loader)
    next(found)
    with pytest.raises(KeyError, match="gone"):
        next(found)
    reader = fluid.io.PyReader(capacity=2, return_list=True)
    reader.decorate_batch_generator(batches())
    assert len(list(reader)) == 3


def test_runs_take_the_batches_of_a_started_loader(program):
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
    loader = fluid.io.DataLoader.from_generator([x, y], capacity=2, iterable=False)
    loader.set_batch_generator(batches())
    out, exe = fluid.layers.reduce_sum(x), fluid.Executor(fluid.CPUPlace())
    for _ in range(2):
        loader.start()
        sums = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                sums.append(float(exe.run(fetch_list=[out])[0]))
        loader.reset()
        assert sums == [0.0, 8.0, 16.0]


def test_an_iterable_loader_gives_feeds(program):
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
    loader = fluid.io.DataLoader.from_generator([x, y], capacity=2)
    loader.set_batch_generator(batches(), fluid.cpu_places(1))
    out, exe = fluid.layers.reduce_sum(x), fluid.Executor(fluid.CPUPlace())
    assert [float(exe.run(feed=feed, fetch_list=[out])[0]) for feed in loader()] == [0.0, 8.0, 16.0]


def test_a_dataset_of_files_gives_feeds(program, tmp_path):
    (tmp_path / "rows").write_text("".join(f"1 {i} 1 {i % 2}\n" for i in range(5)))
    x, y = fluid.data("x", [None, 1]), fluid.data("y", [None, 1], "int64")
    dataset = paddle.distributed.InMemoryDataset()
    dataset.init(batch_size=2, thread_num=1, use_var=[x, y])
    dataset.set_filelist([str(tmp_path / "rows")])
    dataset.load_into_memory()
    for drop_last, count in ((True, 2), (False, 3)):
        loader = fluid.io.DataLoader.from_dataset(dataset, fluid.cpu_places(1), drop_last=drop_last)
        assert [list(feed) for feed, in loader()] == [["x", "y"]] * count


def steps(kind, **options):
    with fluid.dygraph.guard():
        layer = fluid.dygraph.Linear(2, 1, fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5)), False)
        opt = getattr(fluid.optimizer, kind)(parameter_list=layer.parameters(), **options)
        for _ in range(2):
            fluid.layers.reduce_sum(layer(fluid.dygraph.to_variable(np.array([[1, 2]], "float32")))).backward()
            opt.minimize(fluid.dygraph.to_variable(np.zeros([1], "float32")), parameter_list=layer.parameters())
            layer.clear_gradients()
        return layer.weight.numpy().ravel()


def test_lars():
    p, v, g = np.full(2, 0.5), np.zeros(2), np.array([1.0, 2.0])
    for _ in range(2):
        n, m = np.linalg.norm(p), np.linalg.norm(g)
        v = 0.9 * v + 0.1 * n * 0.001 / (m + 0.0005 * n) * (g + 0.0005 * p)
        p = p - v
    np.testing.assert_allclose(steps("LarsMomentumOptimizer", learning_rate=0.1, momentum=0.9), p, rtol=1e-6)


def test_decayed_adagrad():
    p, m, g = np.full(2, 0.5), np.zeros(2), np.array([1.0, 2.0])
    for _ in range(2):
        m = 0.95 * m + 0.05 * g * g
        p = p - 0.1 * g / (np.sqrt(m) + 1e-6)
    np.testing.assert_allclose(steps("DecayedAdagradOptimizer", learning_rate=0.1), p, rtol=1e-5)


def test_ftrl():
    p, s, line, g = np.full(2, 0.5), np.zeros(2), np.zeros(2), np.array([1.0, 2.0])
    for _ in range(2):
        new = s + g * g
        line = line + g - (np.sqrt(new) - np.sqrt(s)) / 0.1 * p
        x, y = np.sign(line) * 0.01 - line, np.sqrt(new) / 0.1 + 0.04
        p, s = np.where(abs(line) > 0.01, x / y, 0), new
    np.testing.assert_allclose(steps("FtrlOptimizer", learning_rate=0.1, l1=0.01, l2=0.02), p, rtol=1e-5)


def test_dpsgd_clips():
    got = steps("DpsgdOptimizer", learning_rate=0.1, clip=1.0, batch_size=16.0, sigma=0.0)
    np.testing.assert_allclose(got, 0.5 - 0.2 * np.array([1, 2]) / np.sqrt(5), rtol=1e-5)


def test_flags_of_paddle_are_kept():
    assert paddle.get_flags("FLAGS_sort_sum_gradient") == {"FLAGS_sort_sum_gradient": 0}
    paddle.set_flags({"FLAGS_sort_sum_gradient": True})
    assert paddle.get_flags(["FLAGS_sort_sum_gradient"]) == {"FLAGS_sort_sum_gradient": 1}
    paddle.set_flags({"FLAGS_sort_sum_gradient": False})
    with pytest.raises(ValueError):
        paddle.set_flags({"FLAGS_no_such": 1})


def test_guards_have_names_of_their_own():
    for _ in range(2):
        with fluid.dygraph.guard():
            assert fluid.dygraph.Linear(2, 2, fluid.ParamAttr(name="own")).weight.name == "own"
            assert fluid.dygraph.Linear(2, 2).weight.name == "linear_1.w_0"


def test_whole_numbers_take_stop_gradient():
    x = paddle.to_tensor([1, 2], stop_gradient=False)
    x.stop_gradient = False
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    (x.astype("float32") * w).sum().backward()
    assert w.grad.tolist() == [1.0, 2.0] and x.grad is None


def test_default_scope():
    from proa.fluid import default_scope_funcs as scopes
    scopes.var("a")
    scopes.scoped_function(lambda: scopes.var("b"))
    assert scopes.find_var("a") is not None and scopes.find_var("b") is None


def test_predictor_of_2_0(program, tmp_path):
    x = fluid.data("x", [None, 3])
    out, exe = fluid.layers.fc(x, 2), fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rows = np.random.rand(2, 3).astype("float32")
    want, = exe.run(feed={"x": rows}, fetch_list=[out])
    fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe, model_filename="m", params_filename="p")
    predictor = fluid.core.create_paddle_predictor(fluid.core.AnalysisConfig(str(tmp_path / "m"), str(tmp_path / "p")))
    predictor.get_input_tensor("x").copy_from_cpu(rows)
    assert predictor.get_input_tensor_shape() == {"x": [2, 3]}
    predictor.zero_copy_run()
    got = predictor.get_output_tensor(predictor.get_output_names()[0]).copy_to_cpu()
    np.testing.assert_allclose(got, want, rtol=1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_assign_to_a_tensor_of_another_shape_is_one_more_write():
    x = paddle.zeros([4, 2, 3])
    x[0] = 1.1
    saved = x * 1.0
    assert paddle.assign(paddle.ones([3], "int32"), x) is x
    assert x.inplace_version == 2 and x.tolist() == [1, 1, 1] and x.dtype == paddle.int32 and saved.shape == [4, 2, 3]


def test_basic_units():
    from proa.fluid.contrib.layers import BasicGRUUnit, BasicLSTMUnit
    rng = np.random.default_rng(0)
    x, h, c = (rng.standard_normal([2, n]).astype("float32") for n in (3, 4, 4))
    paddle.seed(1)
    with fluid.dygraph.guard():
        unit = BasicLSTMUnit("lstm", 4)
        hidden, cell = unit(*map(fluid.dygraph.to_variable, (x, h, c)))
        i, j, f, o = np.split(np.concatenate([x, h], 1) @ unit._weight.numpy() + unit._bias.numpy(), 4, 1)
        new = c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
        np.testing.assert_allclose(cell.numpy(), new, rtol=1e-5)
        np.testing.assert_allclose(hidden.numpy(), np.tanh(new) * sigmoid(o), rtol=1e-5)
        unit = BasicGRUUnit("gru", 4)
        out = unit(fluid.dygraph.to_variable(x), fluid.dygraph.to_variable(h))
        r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ unit._gate_weight.numpy()), 2, 1)
        new = np.tanh(np.concatenate([x, r * h], 1) @ unit._candidate_weight.numpy())
        np.testing.assert_allclose(out.numpy(), u * h + (1 - u) * new, rtol=1e-5)


@pytest.mark.parametrize("layers,ways", [(1, 1), (2, 2)])
def test_basic_layers_and_lstm(program, layers, ways):
    from proa.fluid.contrib.layers import basic_gru, basic_lstm
    x = fluid.data("x", [2, 5, 3])
    first = fluid.layers.fill_constant([layers * ways, 2, 4], "float32", 0.0)
    gru = basic_gru(x, None, 4, layers, bidirectional=ways == 2)
    lstm = basic_lstm(x, first, first, 4, layers, bidirectional=ways == 2)
    plain = fluid.layers.lstm(fluid.layers.transpose(x, [1, 0, 2]), first, first, 5, 4, layers, is_bidirec=ways == 2)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    shapes = [one.shape for one in exe.run(feed={"x": np.ones([2, 5, 3], "float32")}, fetch_list=[*gru, *lstm, *plain])]
    state = (layers * ways, 2, 4)
    assert shapes == [(2, 5, 4 * ways), state, (2, 5, 4 * ways), state, state, (5, 2, 4 * ways), state, state]


def test_operands_of_other_kinds_are_type_errors(program):
    x, y, short = fluid.data("x", [2], "int32"), fluid.data("y", [2], "int32"), fluid.data("s", [2], "int16")
    layers = fluid.layers
    for call in (lambda: layers.less_than(x, short), lambda: layers.equal(short, y), lambda: layers.less_than(x, y, force_cpu=1),
                 lambda: layers.greater_than(x, y, cond=1), lambda: layers.relu(x), lambda: layers.reduce_all(x),
                 lambda: layers.reduce_sum(short), lambda: layers.elementwise_add(x, np.ones(2))):
        with pytest.raises(TypeError, match="must be"):
            call()
