"""paddle.amp.debugging where Paddle's differs or has nothing to compare with: names of ops, lists of ops, programs, threads."""
import contextlib
import io
import threading

import numpy as np
import pytest

import proa as paddle
from proa import _core
from proa.amp import debugging
from proa.amp.debugging import DebugMode, TensorCheckerConfig


@pytest.fixture(autouse=True)
def level():
    """Later tests find the flags as they were."""
    yield
    paddle.set_flags({"FLAGS_check_nan_inf": 0, "FLAGS_check_nan_inf_level": 0})


def config(**settings):
    with contextlib.redirect_stdout(io.StringIO()):
        return TensorCheckerConfig(True, **settings)


@contextlib.contextmanager
def checking(**settings):
    debugging.enable_tensor_checker(config(**settings))
    try:
        yield
    finally:
        debugging.disable_tensor_checker()


def ops(text):
    return [line.partition("op=")[2].partition(",")[0] for line in text.splitlines()]


def test_abort_names_the_gradient():
    x = paddle.to_tensor([1.0, 0.0], stop_gradient=False)
    with checking(), pytest.raises(RuntimeError, match=r"num_nan=1, num_inf=0.*op=elementwise_pow_grad"):
        paddle.pow(x, paddle.to_tensor([0.2, 0.0])).sum().backward()
    assert paddle.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": 0}
    assert np.isinf((1 / paddle.zeros([1])).numpy())


def test_abort_writes_the_log_first(tmp_path):
    with checking(output_dir=str(tmp_path / "logs")), pytest.raises(RuntimeError, match="op=log"):
        paddle.zeros([2]).log()
    assert ops((tmp_path / "logs/worker_cpu").read_text()) == ["log"]


@pytest.mark.parametrize("checked, skipped, seen", [
    (None, None, ["scale", "exp", "elementwise_add"]), (["exp"], None, ["exp"]),
    (None, ("exp",), ["scale", "elementwise_add"]), (["exp", "scale"], ["scale"], ["exp"])])
def test_lists_of_ops(capsys, checked, skipped, seen):
    x = paddle.ones([2])
    settings = config(debug_mode=DebugMode.CHECK_ALL, checked_op_list=checked, skipped_op_list=skipped)
    capsys.readouterr()
    debugging.enable_tensor_checker(settings)
    paddle.add(paddle.exp(paddle.scale(x, 2.0)), x)
    debugging.disable_tensor_checker()
    assert ops(capsys.readouterr().out) == seen


def test_the_flags_level_alone(capsys):
    paddle.set_flags({"FLAGS_check_nan_inf": 1, "FLAGS_check_nan_inf_level": 1})
    paddle.zeros([2]).log()
    assert ops(capsys.readouterr().out) == ["log"]
    paddle.set_flags({"FLAGS_check_nan_inf_level": 0})
    with pytest.raises(RuntimeError, match="log"):
        paddle.zeros([2]).log()
    paddle.set_flags({"FLAGS_check_nan_inf": 0})
    paddle.zeros([2]).log()
    assert capsys.readouterr().out == ""


def test_steps_in_the_middle():
    TensorCheckerConfig.current_step_id = 0
    settings = config(debug_step=[1, 3])
    steps = [settings.update_and_check_step_id() for _ in range(5)]
    TensorCheckerConfig.current_step_id = 0
    assert steps == [False, True, True, False, False]


def test_programs_and_compiled_functions_are_checked(capsys):
    @paddle.jit.to_static
    def net(x):
        return (x * 2).log()
    net(paddle.ones([2]))
    with checking(debug_mode=DebugMode.CHECK_NAN_INF):
        net(paddle.zeros([2]))
    assert ops(capsys.readouterr().out) == ["fused_elementwise"]  # the pass makes one op of both


def test_other_threads_are_checked():
    failed = []

    def work():
        try:
            paddle.zeros([1]).log()
        except RuntimeError as e:
            failed.append(str(e))
    with checking():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(failed) == 1 and "op=log" in failed[0]


def test_an_error_in_the_report_is_the_ops():
    def report(*arguments):
        raise KeyError("no place to write")
    _core.inspect_calls(None, lambda op: True, report)
    try:
        with pytest.raises(RuntimeError, match="no place to write"):
            paddle.ones([1])
    finally:
        _core.inspect_calls(None, None, None)
    assert paddle.ones([1]).numpy() == 1


def test_counting_beside_checking(capsys):
    with checking(debug_mode=DebugMode.CHECK_ALL), debugging.collect_operator_stats():
        paddle.exp(paddle.ones([1]))
    text = capsys.readouterr().out
    assert "op=exp" in text and "  exp  " in text and " op count: 2 " in text


def test_gradients_are_not_counted():
    x = paddle.ones([2], "float32")
    x.stop_gradient = False
    out = io.StringIO()
    with contextlib.redirect_stdout(out), debugging.collect_operator_stats():
        paddle.tanh(x).backward(paddle.ones([2]))
    assert [line.split("|")[0].strip() for line in out.getvalue().splitlines()[2:-2]] == ["fill_constant", "tanh"]


def test_empty_complex_and_whole_numbers():
    numbers = [t.numpy().tolist() for t in debugging.check_numerics(paddle.zeros([0]), "op", "t")]
    assert numbers == [[0, 0, 0], [0, 0, 0]]
    z = paddle.to_tensor([1 + 2j, complex(0, np.nan)])
    with pytest.raises(RuntimeError, match="num_nan=1, num_inf=0, num_zero=1"):
        debugging.check_numerics(z, "op", "t")
    with pytest.raises(RuntimeError, match="must be floating-point or complex, got int64"):
        debugging.check_numerics(paddle.to_tensor([1]), "op", "t")
    with pytest.raises(TypeError, match="numerics: expected a Tensor, got int"):
        _core.numerics(1)
    with pytest.raises(TypeError):
        _core.inspect_calls(None)


def test_workbook_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xlsxwriter", None)
    with pytest.raises(ModuleNotFoundError, match="compare_accuracy: the package xlsxwriter is missing"):
        debugging.compare_accuracy(str(tmp_path), str(tmp_path), str(tmp_path / "out.xlsx"))


def test_only_in_dynamic_mode():
    paddle.enable_static()
    try:
        with pytest.raises(AssertionError, match="enable_operator_stats_collection"):
            debugging.enable_operator_stats_collection()
    finally:
        paddle.disable_static()
