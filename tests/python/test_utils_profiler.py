"""paddle.utils.profiler, which 2.6.2 no longer has: tables, traces, ranges of batches, errors."""
import json

import pytest

import proa as paddle
from proa.utils import profiler


def relu():
    paddle.nn.functional.relu(paddle.ones([4]))


def test_a_profile_prints_a_table_and_leaves_a_trace(tmp_path, capsys):
    path = tmp_path / "trace"
    with profiler.profiler("CPU", "total", str(path)):
        relu()
    assert "relu" in capsys.readouterr().out
    assert any(event.get("name") == "relu" for event in json.loads(path.read_text())["traceEvents"])


def test_reset_forgets_what_came_before(tmp_path, capsys):
    profiler.start_profiler("All")
    relu()
    profiler.reset_profiler()
    paddle.tanh(paddle.ones([4]))
    profiler.stop_profiler("max", str(tmp_path / "trace"))
    text = capsys.readouterr().out
    assert "tanh" in text and "relu" not in text
    profiler.stop_profiler()  # none runs: nothing happens


def test_only_batches_of_the_range_are_timed(tmp_path, capsys):
    options = profiler.ProfilerOptions({"batch_range": [2, 4], "profile_path": str(tmp_path / "trace"), "nonsense": 1})
    with profiler.Profiler(options=options.with_state("CPU")) as one:
        assert profiler.get_profiler() is one
        for batch in range(6):
            (relu if 2 <= batch < 4 else paddle.tanh)(*([] if 2 <= batch < 4 else [paddle.ones([4])]))
            one.record_step()
    events = json.loads((tmp_path / "trace").read_text())["traceEvents"]
    assert [event["name"] for event in events if event.get("name") in ("relu", "tanh")] == ["relu", "relu"]
    assert profiler.get_profiler() is not one


@pytest.mark.parametrize("call", [lambda: profiler.start_profiler("TPU"), lambda: profiler.start_profiler("CPU", "More"),
                                  lambda: profiler.stop_profiler("size"),
                                  lambda: profiler.ProfilerOptions()["nonsense"]])
def test_unknown_words_are_refused(call):
    with pytest.raises(ValueError):
        call()
