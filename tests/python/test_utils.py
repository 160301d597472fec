"""device, utils, version and the world of one process: what they say, and their errors."""
import pathlib

import pytest

import proa as paddle


def test_every_name_of_the_namespace_loads():
    missing = [n for n in dir(paddle) if n not in ("vision",) and not hasattr(paddle, n)]
    assert not missing


def test_run_check_trains(capsys):
    paddle.utils.run_check()
    assert "works" in capsys.readouterr().out


def test_devices():
    assert paddle.set_device("cpu").is_cpu_place() and paddle.get_device() == "cpu"
    assert not paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count() == 0
    with pytest.raises(ValueError, match="gpu:7"):
        paddle.set_device("gpu:7")
    with pytest.raises(TypeError, match="set_device"):
        paddle.set_device(3)


def test_flags():
    paddle.set_flags({"FLAGS_check_nan_inf": True})
    assert paddle.get_flags(["FLAGS_check_nan_inf"]) == {"FLAGS_check_nan_inf": 1}
    paddle.set_flags({"FLAGS_check_nan_inf": False})
    for call in (lambda: paddle.set_flags({"FLAGS_nothing": 1}), lambda: paddle.get_flags("FLAGS_nothing")):
        with pytest.raises(ValueError, match="FLAGS_nothing"):
            call()


def test_every_flag_is_documented():
    with pytest.raises(ValueError) as refused:
        paddle.get_flags("FLAGS_nothing")
    names = str(refused.value).split("there are: ")[1].split(", ")
    page = (pathlib.Path(__file__).parents[2] / "docs" / "c-api.md").read_text(encoding="utf-8")
    assert "passes" in names and [n for n in names if f"| `{n}` |" not in page] == []


def test_require_version():
    paddle.utils.require_version("2.0", "2.7.0")
    with pytest.raises(Exception, match="2.7"):
        paddle.utils.require_version("2.7")
    with pytest.raises(ValueError):
        paddle.utils.require_version("two")


def test_deprecated_warns():
    @paddle.utils.deprecated(update_to="paddle.new", level=1)
    def old():
        return 3
    with pytest.warns(DeprecationWarning, match="paddle.new"):
        assert old() == 3


def test_data_parallel_of_one_process():
    inner = paddle.nn.Linear(2, 3)
    net = paddle.DataParallel(inner)
    net(paddle.ones([1, 2])).sum().backward()
    assert list(net.state_dict()) == ["weight", "bias"] and inner.weight.grad is not None
    assert paddle.distributed.get_world_size() == 1 and paddle.distributed.get_rank() == 0


def test_more_processes_are_refused(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    with pytest.raises(RuntimeError, match="DataParallel"):
        paddle.DataParallel(paddle.nn.Linear(2, 3))


def test_batch():
    assert list(paddle.batch(lambda: iter(range(5)), 2)()) == [[0, 1], [2, 3], [4]]
    assert list(paddle.batch(lambda: iter(range(5)), 2, drop_last=True)()) == [[0, 1], [2, 3]]
