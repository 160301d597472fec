"""`proa plan`: figures that can be computed by hand, chosen degrees and their reasons, a saved program, speeds measured as a job
of two ranks, the page, and bad input."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import pytest

import proa as paddle
from proa import nn
from proa.static import InputSpec
from _job import passes

BUILD = pathlib.Path(os.environ.get("PROA_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve()
PROA = BUILD / "bin/proa"
GPT = "gpt:layers=8,hidden=512,heads=8,vocabulary=1024,sequence=128"


def plan(*words, fails=False):
    run = subprocess.run([PROA, "plan", *map(str, words)], capture_output=True, text=True, timeout=120)
    assert run.returncode == (2 if fails else 0), run.stderr
    return run.stderr if fails else run.stdout


def rows(*words):
    return json.loads(plan(*words, "--json"))["rows"]


def parameters(layers=8, h=512, vocabulary=1024, sequence=128):
    return layers * (12 * h * h + 13 * h) + (vocabulary + sequence) * h + 2 * h


def test_a_pipelines_bubble_and_the_bytes_of_states():
    almost_equal = GPT.replace("vocabulary=1024", "vocabulary=8")  # a head of next to no operations
    row, = rows("--model", almost_equal, "--ranks", 16, "--batch", 64, "--degrees", "pipe=4,data=4", "--flops", "1e12")
    assert row["micro_batches"] == 16 and row["bubble"] == pytest.approx(3 / 19, abs=0.001)
    assert row["exposed"] == 0
    one, = rows("--model", GPT, "--ranks", 1, "--batch", 1, "--degrees", "data=1", "--flops", "1e12")
    assert one["weights"] == 4 * parameters() and one["states"] == 8 * parameters()
    assert one["step"] == pytest.approx(one["model_flops"] / 1e12)
    # 96 B s L h² (1 + s/6h + V/16Lh) counts recomputation, too
    s, L, h, V = 128, 8, 512, 1024
    assert one["model_flops"] == pytest.approx(72 * s * L * h * h * (1 + s / (6 * h) + V / (12 * L * h)))


def test_an_exchange_of_gradients_and_its_ring():
    words = ["--model", GPT, "--ranks", 4, "--batch", 4, "--flops", "1e18", "--link", "1e9"]
    row, = rows(*words, "--degrees", "data=4")
    assert row["exchange"] == pytest.approx(2 * 3 / 4 * 4 * parameters() / 1e9, rel=0.02)  # a backward of no time hides nothing
    row, = rows(*words, "--degrees", "sharding=4,stage=2")
    assert row["exchange"] == pytest.approx(2 * 3 / 4 * 4 * parameters() / 1e9)
    assert row["states"] == pytest.approx(8 * parameters() / 4) and row["gradients"] == pytest.approx(parameters())


def test_cores_copy_gradients_to_buckets_and_between_ranks():
    words = ["--model", GPT, "--ranks", 2, "--batch", 2, "--flops", "1e10", "--memory-bandwidth", "1e10", "--link", "1e9",
             "--degrees", "data=2", "--host-ranks", 2]
    copies, ring = 8 * parameters() / 1e10, 4 * parameters() / 1e9
    busy, = rows(*words, "--host-cores", 2)
    assert busy["exchange"] == pytest.approx(copies + ring)  # no core is free beside backward
    more, = rows(*words, "--host-cores", 4)
    assert copies < more["exchange"] < copies + ring / 4  # the last bucket is left
    half, = rows(*words, "--host-cores", 1)
    assert half["exchange"] == pytest.approx(2 * copies + ring)


def test_later_micro_batches_add_their_gradients():
    words = ["--model", GPT, "--ranks", 1, "--flops", "1e12", "--memory-bandwidth", "1e11", "--degrees", "micro_batch=1"]
    one, = rows(*words, "--batch", 1)
    four, = rows(*words, "--batch", 4)
    assert four["pipeline"] == pytest.approx(4 * one["pipeline"] + 3 * 3 * 4 * parameters() / 1e11)


def test_degrees_are_chosen_with_reasons():
    text = plan("--model", GPT, "--ranks", "8,16", "--batch", 64, "--weak", "--flops", "1e12", "--link", "1e9",
                "--memory", 16 * parameters() // 2)
    assert re.search(r"^ *data  +needs [\d.]+ GB a rank at least, there are", text, re.M)
    assert len(re.findall(r"^  [a-z+ ]+ chosen: ", text, re.M)) == 2 and "16 ranks" in text
    words = ["--model", GPT, "--ranks", 8, "--batch", 64, "--flops", "1e12"]
    row, = rows(*words)
    assert len(row["why"]) == 8 and sum(why.startswith("chosen") for _, why in row["why"]) == 1
    assert row["data"] * row["pipe"] * row["sharding"] * row["model"] == 8
    said = plan(*words, "--memory", 1, fails=True)
    assert "no degrees of 8 ranks fit" in said and said.count("GB a rank at least") == 8


def test_thousands_of_ranks():
    every = rows("--model", "gpt:layers=96,hidden=12288,heads=96,vocabulary=51200,sequence=2048", "--ranks", "128,1024,10240",
                 "--batch", 1280, "--weak", "--flops", "150e12", "--memory-bandwidth", "1.5e12", "--link", "25e9,5e-6",
                 "--local-link", "300e9,2e-6", "--host-ranks", 8, "--memory", "80e9", "--precision", "O2", "--max-micro-batch", 1)
    for row, ranks in zip(every, (128, 1024, 10240)):
        assert row["ranks"] == ranks and 0 < row["memory"] <= 80e9 and 0 <= row["bubble"] < 1
        assert 0 < row["model_flops"] / row["step"] / ranks < 150e12


def test_a_saved_program(tmp_path):
    net = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10))
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[InputSpec([None, 20])])
    words = ["--model", tmp_path / "net.pdmodel", "--flops", "1e9", "--moments", 0]
    row, = rows(*words, "--ranks", 1, "--batch", 4, "--degrees", "micro_batch=4")
    assert row["model_flops"] == 3 * 4 * 2 * (20 * 30 + 30 * 10)
    assert row["weights"] == 4 * (20 * 30 + 30 + 30 * 10 + 10) and row["states"] == 0
    assert row["activations"] >= 4 * 4 * (30 + 10)
    two, = rows(*words, "--ranks", 2, "--batch", 4, "--degrees", "pipe=2")
    assert two["weights"] < row["weights"] and two["bubble"] > 0
    assert "not tensor-parallel" in plan(*words, "--ranks", 2, "--batch", 4, "--degrees", "model=2", fails=True)
    chosen, = rows(*words, "--ranks", 2, "--batch", 4)
    assert chosen["model"] == 1


def test_a_program_with_a_loop_is_refused(tmp_path):
    class Loop(nn.Layer):
        def forward(self, x, n):
            i = paddle.zeros([1], "int64")
            while i < n:
                x, i = x * 2, i + 1
            return x
    paddle.jit.save(paddle.jit.to_static(Loop()), str(tmp_path / "loop"),
                    input_spec=[InputSpec([None, 4]), InputSpec([1], "int64")])
    assert "branches or loops" in plan("--model", tmp_path / "loop", "--ranks", 1, "--batch", 1, "--flops", 1, fails=True)


def test_the_page_is_one_well_formed_file(tmp_path):
    page = tmp_path / "page.html"
    plan("--model", GPT, "--ranks", 8, "--batch", 16, "--degrees", "pipe=4,chunks=2", "--flops", "1e12", "--link", "1e9",
         "--timeline", page)
    text = page.read_text()
    assert "http" not in text and "<script" not in text  # nothing from elsewhere
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        xml.etree.ElementTree.fromstring(svg)
    # four stages of two chunks and eight micro-batches, forward and backward
    assert len(re.findall(r"<title>stage \d: (?:forward|backward)", text)) == 4 * 2 * 8 * 2
    assert "Why these degrees" not in text
    plan("--model", GPT, "--ranks", 8, "--batch", 16, "--flops", "1e12", "--timeline", page)
    assert "Why these degrees" in page.read_text()


def test_speeds_are_measured_by_the_ranks_of_a_job():
    words = [PROA, "launch", "--ranks", "2", PROA, "plan", "--measure", "--model", GPT, "--ranks", "2", "--batch", "2", "--degrees",
             "data=2", "--json"]
    run = subprocess.run(words, capture_output=True, text=True, timeout=120)
    if "measure on a quiet machine" in run.stderr:
        pytest.skip("the machine is too busy for a link's speed")
    assert run.returncode == 0, run.stderr
    machine = json.loads(run.stdout)["machine"]
    assert machine["flops"] > 1e8 and machine["memory_bandwidth"] > 1e8 and machine["link"] > 1e5


@pytest.mark.parametrize("words, said", [
    ([], "no model"),
    (["--model", GPT], "no ranks"),
    (["--model", GPT, "--ranks", "8"], "no batch"),
    (["--model", GPT, "--ranks", "8", "--batch", "8"], "no speed of products"),
    (["--model", GPT, "--ranks", "8,x", "--batch", "8"], "numbers of ranks"),
    (["--model", GPT, "--ranks", "8", "--batch", "0"], "at least 1"),
    (["--model", "gpt:layers=8", "--ranks", "8", "--batch", "8", "--flops", "1"], "hidden is 0"),
    (["--model", "gpt:depth=8", "--ranks", "8", "--batch", "8", "--flops", "1"], "depth"),
    (["--model", GPT, "--ranks", "8", "--batch", "8", "--flops", "fast"], "expected a number"),
    (["--model", GPT, "--ranks", "8", "--batch", "8", "--flops", "1", "--link", "1;2"], "seconds of latency"),
    (["--model", GPT, "--ranks", "8", "--batch", "8", "--flops", "1", "--degrees", "pipe=3"], "8 ranks are not"),
    (["--model", GPT, "--ranks", "8", "--batch", "9", "--flops", "1", "--degrees", "data=8"], "9 rows do not divide"),
    (["--model", GPT, "--ranks", "8", "--batch", "8", "--flops", "1", "--degrees", "rows=8"], "names with"),
    (["--model", GPT, "--ranks", "8", "--batch", "8", "--flops", "1", "--precision", "O3"], "float32, O1 or O2"),
    (["--model", GPT, "--ranks", "8", "--batch", "8", "--flops", "1", "--recompute"], "degrees are searched"),
    (["--model", "missing.pdmodel", "--ranks", "8", "--batch", "8", "--flops", "1"], "missing.pdmodel"),
    (["--model", GPT, "--rank", "8"], "unknown option"),
])
def test_bad_arguments_are_named(words, said):
    assert said in plan(*words, fails=True)


@pytest.mark.parametrize("job", ["data=2", "pipe=2", "sharding=2,stage=3"])
def test_memory_is_what_a_job_takes(job):
    """Predicted bytes against the allocator's peak in a step of the benchmark's GPT."""
    spec = importlib.util.spec_from_file_location("forecast", pathlib.Path(__file__).resolve().parents[2] / "benchmarks/forecast.py")
    forecast = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(forecast)
    predicted, measured = forecast.memory_of(2, job)
    assert abs(predicted / measured - 1) < forecast.MEMORY, (predicted, measured)


# ---- fleet's switch auto ----

AUTO = """
from proa.distributed import fleet
strategy = fleet.DistributedStrategy()
strategy.auto = True
strategy.auto_plan = {"model": {"layers": 4, "hidden": 64, "heads": 4, "vocabulary": 128, "sequence": 16}, "batch": 8}
"""


def test_the_switch_auto_chooses_degrees_on_all_ranks(tmp_path):
    passes(tmp_path, 2, AUTO + """
strategy.auto_plan["machine"] = {"flops": 1e9, "link": 1e9, "memory": 16 * 60 * 4000}
fleet.init(is_collective=True, strategy=strategy)
job, why = strategy.auto_choice["job"], strategy.auto_choice["why"]
degrees = [strategy.hybrid_configs[n + "_degree"] for n in ("dp", "pp", "sharding", "mp")]
assert degrees == [job["data"], job["pipe"], job["sharding"], job["model"]] and np.prod(degrees) == 2
assert len(why) == 8 and sum(": chosen" in line for line in why) == 1
assert strategy.pipeline_configs["micro_batch_size"] == job["micro_batch"]
assert fleet.get_hybrid_communicate_group().topology().world_size() == 2
""")


def test_the_switch_auto_measures_what_is_not_given(tmp_path):
    passes(tmp_path, 2, AUTO + """
fleet.init(is_collective=True, strategy=strategy)
assert strategy.auto_choice["result"]["step"] > 0
""")


def test_the_switch_auto_refuses_in_words():
    from proa.distributed import fleet
    strategy = fleet.DistributedStrategy()
    strategy.auto, strategy.auto_plan = True, {"model": {}}
    with pytest.raises(ValueError, match="model and batch"):
        fleet.init(is_collective=True, strategy=strategy)
    model = {"layers": 4, "hidden": 64, "heads": 4, "vocabulary": 128, "sequence": 16}
    strategy.auto_plan = {"model": model, "batch": 8, "machine": {"flops": 1e9, "memory": 1.0}}
    with pytest.raises(ValueError, match="finds no degrees\ndata: needs"):
        fleet.init(is_collective=True, strategy=strategy)
    strategy.hybrid_configs = {"mp_degree": 2}
    with pytest.raises(ValueError, match="hybrid_configs sets"):
        fleet.init(is_collective=True, strategy=strategy)
