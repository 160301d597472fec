"""Names of Paddle 2.0 that 2.6.2 dropped."""
import proa as paddle
import pytest


def test_methods_of_two_point_oh():
    x = paddle.to_tensor([1.0, 3.0, 1.0])
    assert x.logsigmoid().tolist() == paddle.nn.functional.log_sigmoid(x).tolist()
    values, index, counts = x.unique_with_counts()
    assert (values.tolist(), index.tolist(), counts.tolist()) == ([1.0, 3.0], [0, 1, 0], [2, 1])
    assert x.sums().tolist() == x.tolist()
    assert paddle.device.XPUPlace is paddle.XPUPlace and callable(paddle.check_shape)


def test_sequence_mask():
    lengths = paddle.to_tensor([1, 3])
    assert paddle.fluid.layers.sequence_mask(lengths, 3).tolist() == [[1, 0, 0], [1, 1, 1]]


def test_data_sets_are_set_one_by_one(tmp_path):
    (tmp_path / "lines").write_text("2 1 2 1 0.5\n2 3 4 1 1.5\n2 5 6 1 2.5\n")
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            x, y = paddle.static.data("x", [-1, 2], "int64"), paddle.static.data("y", [-1, 1], "float32")
            data = paddle.fluid.DatasetFactory().create_dataset("InMemoryDataset")
            data.set_batch_size(2)
            data.set_use_var([x, y])
            data.set_pipe_command("sed 's/2[.]5/3.5/'")
            data.set_filelist([str(tmp_path / "lines")])
            data.load_into_memory()
            assert [feed["y"].tolist() for feed in data._batches()] == [[[0.5], [1.5]], [[3.5]]]
            with pytest.raises(ValueError, match="fs_name"):
                data.set_hdfs_config("hdfs://there", "")
            with pytest.raises(NotImplementedError, match="InMemoryDataset"):
                paddle.fluid.dataset.QueueDataset().local_shuffle()
    finally:
        paddle.disable_static()
