"""fluid's readers in programs, descriptions of feeds, transpilers, and distributions and boxes of 2.0 beside their twins."""
import numpy as np
import pytest

import proa as paddle
from proa import fluid

FEED = """# how a line is read
name: "MultiSlotDataFeed"
batch_size: 2
multi_slot_desc {
    slots { name: "words" type: "uint64" is_dense: false is_used: false }
    slots { name: "label" type: "uint64" is_dense: false is_used: false shape: 1 shape: 2 }
}
"""


def test_description_of_a_feed(tmp_path):
    (tmp_path / "feed").write_text(FEED)
    feed = fluid.DataFeedDesc(str(tmp_path / "feed"))
    feed.set_batch_size(128)
    feed.set_dense_slots(["words"])
    feed.set_use_slots(["label"])
    assert feed.desc() == """name: "MultiSlotDataFeed"
batch_size: 128
multi_slot_desc {
  slots {
    name: "words"
    type: "uint64"
    is_dense: true
    is_used: false
  }
  slots {
    name: "label"
    type: "uint64"
    is_dense: false
    is_used: true
    shape: 1
    shape: 2
  }
}
pipe_command: "cat"
"""
    (tmp_path / "again").write_text(feed.desc())
    assert fluid.DataFeedDesc(str(tmp_path / "again")).desc() == feed.desc()
    with pytest.raises(ValueError, match="no slot 'none'"):
        feed.set_use_slots(["none"])


@pytest.mark.parametrize("text", ["name: 3", "slots {}", "multi_slot_desc { slots { name: \"a\"", "batch_size: two", "multi_slot_desc: 3",
                                  "name \u00e9", "name", "}"])
def test_descriptions_that_are_none(tmp_path, text):
    (tmp_path / "feed").write_text(text)
    with pytest.raises(ValueError, match="DataFeedDesc: "):
        fluid.DataFeedDesc(str(tmp_path / "feed"))


def test_description_of_a_data_set(program):
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_batch_size(4)
    dataset.set_use_var([fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64", lod_level=1)])
    dataset.set_fea_eval(100)
    text = dataset.desc()
    assert 'name: "MultiSlotInMemoryDataFeed"\nbatch_size: 4\n' in text and 'type: "uint64"\n    is_used: true' in text and "shape: -1\n    shape: 3" in text
    with pytest.raises(NotImplementedError):
        fluid.dataset.QueueDataset().slots_shuffle(["x"])


def test_py_reader(program):
    reader = fluid.layers.py_reader(8, [(-1, 4), (-1, 1)], ["float32", "int64"])
    x, y = fluid.layers.read_file(fluid.layers.double_buffer(reader))
    total, count = fluid.layers.reduce_sum(x), fluid.layers.reduce_sum(y)
    reader.decorate_paddle_reader(paddle.batch(lambda: ((np.full([4], i, "float32"), i) for i in range(5)), 2))
    exe = fluid.Executor(fluid.CPUPlace())
    for _ in range(2):
        reader.start()
        found = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                found.append([float(v) for v in exe.run(fetch_list=[total, count])])
        reader.reset()
        assert found == [[4.0, 1.0], [20.0, 5.0], [16.0, 4.0]]


def test_reader_of_given_variables(program):
    x = fluid.data("x", [None, 4])
    reader = fluid.layers.create_py_reader_by_data(4, [x])
    reader.decorate_tensor_provider(lambda: iter([[np.ones([2, 4], "float32")]]))
    out = fluid.layers.reduce_sum(fluid.layers.read_file(reader))
    reader.start()
    assert float(fluid.Executor().run(fetch_list=[out])[0]) == 8.0


def test_next_batch():
    reader = fluid.io.PyReader(capacity=2, return_list=True)
    reader.decorate_batch_generator(lambda: iter([[np.zeros(2, "float32")], [np.ones(2, "float32")]]))
    assert [float(reader.next()[0][0]) for _ in range(2)] == [0.0, 1.0]
    with pytest.raises(StopIteration):
        reader.next()
    assert float(reader.next()[0][0]) == 0.0


@pytest.mark.parametrize("kind", [np.array, lambda v: paddle.to_tensor(np.array(v, "float32"))])
def test_normal_of_several_dims(kind):
    from proa.fluid.layers import MultivariateNormalDiag
    first, second = ([0.3, 0.5], [0.4, 0.5]), ([0.2, 0.4], [0.3, 0.4])
    one, two = (MultivariateNormalDiag(kind(loc), kind(np.diag(scale))) for loc, scale in (first, second))
    singles = [[paddle.distribution.Normal(m, v ** 0.5) for m, v in zip(*given)] for given in (first, second)]
    np.testing.assert_allclose(float(one.entropy()), sum(float(n.entropy()) for n in singles[0]), rtol=1e-5)
    np.testing.assert_allclose(float(one.kl_divergence(two)), sum(float(a.kl_divergence(b)) for a, b in zip(*singles)), rtol=1e-4)
    with pytest.raises(TypeError, match="loc"):
        MultivariateNormalDiag(0.5, [[1.0]])


def test_boxes_of_ssd():
    """As box_coder, softmax and multiclass_nms of 2.6's vision.ops one after the other."""
    rng = np.random.default_rng(3)
    prior = np.sort(rng.random([6, 2, 2]).astype("float32"), 1).reshape(6, 4)
    loc, scores = rng.standard_normal([2, 6, 4]).astype("float32") * 0.1, rng.standard_normal([2, 6, 3]).astype("float32")
    spread = np.full([6, 4], 0.1, "float32")
    with fluid.dygraph.guard():
        given = [fluid.dygraph.to_variable(v) for v in (loc, scores, prior, spread)]
        out, index = fluid.layers.detection_output(*given, nms_threshold=0.5, return_index=True)
        boxes = paddle.vision.ops.box_coder(given[2], given[3], given[0], "decode_center_size")
    rows = boxes.numpy().reshape(-1, 4)[index.numpy().reshape(-1)]
    chances = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(out.numpy()[:, 2:], rows, rtol=1e-5)
    kinds = out.numpy()[:, 0].astype(int)
    assert (kinds > 0).all()
    np.testing.assert_allclose(out.numpy()[:, 1], chances.reshape(-1, 3)[index.numpy().reshape(-1), kinds], rtol=1e-5)


def test_pinned_places():
    with pytest.raises(AssertionError, match="CUDA"):
        fluid.cuda_pinned_places(2)


def test_dispatchers():
    class Var:
        def __init__(self, name):
            self.name = name
    variables = [Var(f"var{i}") for i in range(8)]
    ends = ["a:1", "b:2"]
    by_hash, turns = fluid.transpiler.HashName(ends), fluid.transpiler.RoundRobin(ends)
    assert set(by_hash.dispatch(variables)) == set(ends) and by_hash.dispatch(variables) == by_hash.dispatch(variables)
    assert turns.dispatch(variables[:3]) == ["a:1", "b:2", "a:1"] and turns.dispatch(variables[:1]) == ["b:2"]
    turns.reset()
    assert turns.dispatch(variables[:1]) == ["a:1"]


def test_transpiler_of_one_rank(program):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [2, 3]), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    assert (config.slice_var_up, config.split_method, config.min_block_size) == (True, None, 8192)
    servers = fluid.DistributeTranspiler(config)
    with pytest.raises(NotImplementedError, match="parameter servers"):
        servers.transpile(0, trainers=2)
    with pytest.raises(RuntimeError, match="transpile"):
        servers.get_trainer_program()
    config.mode = "collective"
    ranks = fluid.DistributeTranspiler(config)
    ranks.transpile(0, trainers="127.0.0.1:6174", current_endpoint="127.0.0.1:6174")
    assert ranks.get_trainer_program() is fluid.default_main_program()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    assert np.isfinite(exe.run(ranks.get_trainer_program(), feed={"x": np.ones([2, 3], "float32")}, fetch_list=[loss])[0]).all()


@pytest.mark.parametrize("scheme,labels,found", [
    ("IOB", [0, 1, 1, 4, 2, 3], {(0, 2, 0), (4, 5, 1)}), ("IOE", [0, 0, 1, 0, 4, 2, 3], {(0, 2, 0), (3, 3, 0), (5, 6, 1)}),
    ("IOBES", [3, 0, 1, 2, 8, 4, 6, 7], {(0, 0, 0), (1, 3, 0), (5, 6, 1), (7, 7, 1)}), ("plain", [0, 0, 1, 2, 1], {(0, 1, 0), (2, 2, 1), (4, 4, 1)})])
def test_chunks(scheme, labels, found):
    from proa.static import host_metrics
    assert host_metrics._chunks(labels, 2, host_metrics._SCHEMES[scheme]) == found


def test_chunk_eval(program):
    kind = ("IOB", 2)
    x, y, lengths = (fluid.data(name, shape, "int64") for name, shape in (("x", [None, 6]), ("y", [None, 6]), ("n", [None])))
    made = fluid.layers.chunk_eval(x, y, *kind, seq_length=lengths)
    feed = {"x": [[0, 1, 4, 2, 3, 0], [2, 4, 4, 4, 4, 4]], "y": [[0, 1, 4, 2, 2, 4], [2, 4, 4, 4, 4, 4]], "n": [5, 3]}
    feed = {name: np.array(value, "int64") for name, value in feed.items()}
    got = fluid.Executor().run(feed=feed, fetch_list=list(made))
    np.testing.assert_allclose([v.item() for v in got], [2 / 3, 2 / 4, 4 / 7, 3, 4, 2], rtol=1e-6)
    with pytest.raises(ValueError, match="label 9"):
        fluid.Executor().run(feed={**feed, "x": feed["x"] + 9}, fetch_list=list(made))


def test_loss_of_yolo_in_a_program(program):
    """A program's loss and gradient, of a batch whose size it does not know, are those of eager mode."""
    rng, options = np.random.default_rng(0), ([10, 13, 16, 30, 33, 23], [0, 1], 3, 0.5, 32)
    given = {"x": rng.standard_normal([2, 16, 4, 4]).astype("float32"), "box": rng.random([2, 3, 4]).astype("float32"),
             "label": rng.integers(0, 3, [2, 3]).astype("int32")}
    x, box, label = (fluid.data(name, [None, *value.shape[1:]], str(value.dtype)) for name, value in given.items())
    x.stop_gradient = False
    loss = fluid.layers.reduce_sum(fluid.layers.yolov3_loss(x, box, label, *options))
    slope, = fluid.gradients(loss, x)
    got = fluid.Executor().run(feed=given, fetch_list=[loss, slope])
    with fluid.dygraph.guard():
        x, box, label = map(paddle.to_tensor, given.values())
        x.stop_gradient = False
        loss = paddle.vision.ops.yolo_loss(x, box, label, *options).sum()
        loss.backward()
        np.testing.assert_allclose(got[0], loss.numpy(), rtol=1e-5)
        np.testing.assert_allclose(got[1], x.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_names_count_anew_after_static_mode():
    paddle.enable_static()
    paddle.disable_static()
    for _ in range(2):
        assert paddle.nn.Linear(2, 2, paddle.ParamAttr(name="own")).weight.name == "own"
        paddle.enable_static()
        paddle.disable_static()
    with pytest.raises(AssertionError, match="imperative"):
        paddle.enable_static()
        try:
            fluid.dygraph.to_variable(np.ones(2))
        finally:
            paddle.disable_static()


def test_converted_code_may_call_to_variable(program):
    @fluid.dygraph.jit.dygraph_to_static_func
    def f(x):
        return fluid.dygraph.to_variable(x) + 1
    assert fluid.Executor().run(fetch_list=[f(np.ones(2, "float32"))])[0].tolist() == [2.0, 2.0]


def test_gradients_are_not_cleared_in_a_program():
    def f(x):
        x.clear_gradient()
        return x
    with pytest.raises(AssertionError, match="clear_gradient"):
        paddle.jit.to_static(f, full_graph=True)(paddle.ones([2]))
