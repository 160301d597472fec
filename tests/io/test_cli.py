"""The `proa` command on models that Proa saves: inspect, run (equal to the predictor's answer), diff, and bad input,
which is a message and exit status 2, never a crash."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

import proa as paddle
from proa import nn
from proa.static import InputSpec

BUILD = pathlib.Path(os.environ.get("PROA_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve()
PROA = BUILD / "bin/proa"


class LeNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2D(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2D(2),
                                      nn.Conv2D(6, 16, 5, stride=2), nn.BatchNorm2D(16), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(400, 12), nn.ReLU(), nn.Linear(12, 10))

    def forward(self, x):
        return self.head(paddle.flatten(self.features(x), 1))


class Loop(nn.Layer):
    """A branch inside a loop whose length is an input."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, n):
        i = paddle.zeros([1], "int64")
        while i < n:
            x = self.linear(x)
            if x.sum() > 0:
                x = x * 0.5
            else:
                x = x + 1.0
            i += 1
        return x, i


class Recurrent(nn.Layer):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 7, direction="bidirect")

    def forward(self, x):
        return self.lstm(x)[0]


MODELS = {
    "lenet": (LeNet, [InputSpec([None, 1, 28, 28], "float32", "x")], {"x": ("float32", (3, 1, 28, 28))}),
    "loop": (Loop, [InputSpec([2, 4], "float32", "x"), InputSpec([1], "int64", "n")],
             {"x": ("float32", (2, 4)), "n": ("int64", (1,))}),
    "recurrent": (Recurrent, [InputSpec([None, 5, 6], "float32", "x")], {"x": ("float32", (2, 5, 6))}),
}


def command(*words, status=0, cwd=None):
    """The command's output on stdout; on stderr where it is to fail."""
    done = subprocess.run([str(PROA), *map(str, words)], capture_output=True, text=True, timeout=120, cwd=cwd,
                          env=dict(os.environ, FLAGS_num_threads="1"))
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    assert bool(done.stderr) == (status == 2), done.stderr
    return done.stderr if status == 2 else done.stdout


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with <name>.pdmodel, <name>.npz (inputs) and <name>_out.npz (what the loaded layer answers)."""
    folder = tmp_path_factory.mktemp("cli")
    for name, (make, specs, inputs) in MODELS.items():
        paddle.seed(3)
        net = make()
        net.eval()
        paddle.jit.save(paddle.jit.to_static(net), str(folder / name), input_spec=specs)
        random = np.random.RandomState(1)
        feed = {n: random.standard_normal(s).astype(t) if t == "float32" else np.full(s, 3, t)
                for n, (t, s) in inputs.items()}
        np.savez(folder / f"{name}.npz", **feed)
        out = paddle.jit.load(str(folder / name))(*(paddle.to_tensor(v) for v in feed.values()))
        out = out if isinstance(out, (list, tuple)) else [out]
        np.savez(folder / f"{name}_out.npz", **{str(i): o.numpy() for i, o in enumerate(out)})
    return folder


def outputs(saved, name, archive):
    """Pairs (got, wanted) in the order of the model's outputs."""
    order = [o["name"] for o in json.loads(command("inspect", saved / f"{name}.pdmodel", "--json"))["outputs"]]
    want = np.load(saved / f"{name}_out.npz")
    got = np.load(archive)
    assert sorted(got.files) == sorted(order) and len(order) == len(want.files)
    return [(got[n], want[str(i)]) for i, n in enumerate(order)]


@pytest.mark.parametrize("name", MODELS)
def test_run_equals_the_loaded_layer(saved, name, tmp_path):
    said = command("run", saved / name, "--inputs", saved / f"{name}.npz", "--save", tmp_path / "o.npz", "--passes", "")
    for got, want in outputs(saved, name, tmp_path / "o.npz"):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        assert got.dtype == want.dtype
        assert f"{want.min():.6g}"[:6] in said
    command("run", saved / f"{name}.pdmodel", "--inputs", saved / f"{name}.npz", "--save", tmp_path / "fast.npz")
    for got, want in outputs(saved, name, tmp_path / "fast.npz"):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert not list(tmp_path.glob("*.tmp"))


def test_run_profiles(saved, tmp_path):
    text = command("run", saved / "lenet", "--shape", "x=2,1,28,28", "--times", 3, "--profile", "--trace",
                   tmp_path / "trace.json")
    assert re.search(r"^conv2d_fused +conv2d_fused_\w+ +6 ", text, re.M), text
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(e["name"] == "conv2d_fused" for e in events) == 6
    assert f"{tmp_path}/no" in command("run", saved / "lenet", "--shape", "x=2,1,28,28", "--trace", tmp_path / "no/t.json",
                                       status=2)


def test_run_files_and_times(saved, tmp_path):
    feed = np.load(saved / "lenet.npz")["x"]
    np.save(tmp_path / "x.npy", np.asfortranarray(feed))
    np.save(tmp_path / "big.npy", feed.astype(">f4"))
    wanted = np.load(saved / "lenet_out.npz")["0"]
    for name in ("x", "big"):
        said = command("run", saved / "lenet", f"--input=x={tmp_path / name}.npy", "--output", tmp_path / name,
                       "--times", 3)
        assert re.search(r"first run [\d.]+ ms, then 3: median [\d.]+ ms", said)
        (file,) = (tmp_path / name).iterdir()
        np.testing.assert_allclose(np.load(file), wanted, rtol=1e-4, atol=1e-5)


def test_random_inputs_go_by_the_seed(saved):
    shape = ("run", saved / "lenet", "--shape", "x=2,1,28,28")
    assert command(*shape) == command(*shape, "--seed", 0) != command(*shape, "--seed", 1)
    assert "int64 [1]" in command("run", saved / "loop", "--shape", "x=2,4", "--shape", "n=1")


@pytest.mark.parametrize("name", MODELS)
def test_inspect(saved, name):
    path = saved / f"{name}.pdmodel"
    layer = paddle.jit.load(str(saved / name))
    seen = json.loads(command("inspect", path, "--json"))
    inputs = {i["name"]: (i["dtype"], len(i["shape"])) for i in seen["inputs"]}
    assert inputs == {n: (t, len(s)) for n, (t, s) in MODELS[name][2].items()}
    elements = sum(int(np.prod(v.shape)) for v in layer.state_dict().values())
    assert seen["parameters"]["elements"] == elements
    assert seen["parameters"]["bytes"] == 4 * elements
    assert seen["parameters"]["count"] == len(seen["parameters"]["tensors"])
    text = command("inspect", path, "--parameters")
    for p in seen["parameters"]["tensors"]:
        assert f"  {p['name']} float32 [" in text
    for block in seen["blocks"]:
        for op in block["ops"]:
            assert op["type"] in text
            assert 0 <= op["attrs"].get("sub_block", 0) < len(seen["blocks"])
    graph = command("inspect", path, "--dot")
    assert graph.startswith("digraph") and graph.count("{") == graph.count("}") == len(seen["blocks"]) + 1
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=graph, text=True, check=True, capture_output=True, timeout=60)


def test_flops(saved):
    flops = {n: json.loads(command("inspect", saved / n, "--json", "--unknown", 3))["flops"] for n in MODELS}
    conv = 2 * 3 * (6 * 28 * 28 * 25 + 16 * 5 * 5 * 6 * 25)
    matmul = 2 * 3 * (400 * 12 + 12 * 10)
    assert flops["lenet"]["by_type"] == {"conv2d": conv, "matmul_v2": matmul}
    assert flops["lenet"]["total"] == conv + matmul
    assert flops["loop"]["total"] == 2 * 2 * 4 * 4
    assert flops["recurrent"]["by_type"] == {"rnn": 2 * 3 * 5 * 2 * 4 * 7 * (6 + 7)}


def test_a_program_that_trains(tmp_path):
    """Gradients count as their forward op for each operand; parameters lie elsewhere."""
    paddle.enable_static()
    try:
        main, start = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, start):
            x = paddle.static.data("x", [4, 1, 8, 8])
            y = paddle.static.data("y", [4, 1], "int64")
            h = nn.Linear(108, 5)(paddle.flatten(nn.Conv2D(1, 3, 3)(x), 1))
            paddle.optimizer.SGD(0.1).minimize(paddle.mean(nn.functional.cross_entropy(h, y)))
        paddle.static.Executor().run(start)
        paddle.static.save(main, str(tmp_path / "train"))
    finally:
        paddle.disable_static()
    seen = json.loads(command("inspect", tmp_path / "train.pdmodel", "--json"))
    conv, matmul = 2 * 4 * 3 * 36 * 9, 2 * 4 * 108 * 5
    # x wants no gradient; those of a product are products
    assert seen["flops"]["by_type"] == {"conv2d": conv, "conv2d_grad": conv, "matmul_v2": 3 * matmul}
    assert {op["role"] for op in seen["blocks"][0]["ops"]} >= {0, 1, 2}
    assert command("diff", tmp_path / "train.pdmodel", tmp_path / "train") == ""
    assert "no parameter file" in command("run", tmp_path / "train", status=2)


def test_sub_blocks_are_the_programs(saved):
    blocks = json.loads(command("inspect", saved / "loop", "--json"))["blocks"]
    named = {op["attrs"]["sub_block"]: i for i, b in enumerate(blocks) for op in b["ops"] if "sub_block" in op["attrs"]}
    assert named == {i: b["parent"] for i, b in enumerate(blocks) if i}


def save(net, prefix, spec):
    net.eval()
    paddle.jit.save(paddle.jit.to_static(net), str(prefix), input_spec=spec)


def test_diff_of_models(saved, tmp_path):
    make, spec, _ = MODELS["lenet"]
    paddle.seed(3)
    net = make()
    save(net, tmp_path / "same", spec)  # other variable names, for they count on
    assert command("diff", saved / "lenet", tmp_path / "same") == ""
    weight = net.head[2].weight
    changed = weight.numpy()
    changed[5, 7] += 1e-3
    weight.set_value(changed)
    paddle.jit.save(net, str(tmp_path / "changed"), input_spec=spec)
    (line,) = command("diff", saved / "lenet", tmp_path / "changed", status=1).splitlines()
    assert re.fullmatch(r"parameter linear_\d+\.w_0: 1 of 120 elements differ, by at most 0\.00(1|09999)\d*", line)
    assert command("diff", saved / "lenet", tmp_path / "changed", "--tolerance", 2e-3) == ""
    for name in MODELS:
        assert command("diff", saved / name, saved / f"{name}.pdmodel") == ""
    assert "alone" in command("diff", saved / "lenet", saved / "loop", status=1)


@pytest.mark.parametrize("change, said", [
    (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Softmax(-1)), ""),
    (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Softmax(0)), "axis -1 | 0"),
    (lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Softmax(-1)), "relu | tanh"),
    (lambda: nn.Sequential(nn.Linear(4, 4), nn.Softmax(-1)), "relu: in the first alone"),
    (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Tanh(), nn.Softmax(-1)), "tanh: in the second alone"),
    (lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Softmax(-1)), "float32 [4, 4] | float32 [4, 5]"),
])
def test_diff_of_structure(change, said, tmp_path):
    spec = [InputSpec([None, 4], "float32", "x")]
    for prefix, make in (("a", lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Softmax(-1))), ("b", change)):
        paddle.seed(5)
        save(make(), tmp_path / prefix, spec)
    out = command("diff", tmp_path / "a", tmp_path / "b", status=1 if said else 0)
    assert said in out and bool(out) == bool(said)


def test_diff_of_arrays(tmp_path):
    def compare(a, b, *words, status):
        np.save(tmp_path / "a.npy", a)
        np.save(tmp_path / "b.npy", b)
        return command("diff", tmp_path / "a.npy", tmp_path / "b.npy", *words, status=status)

    x = np.array([1.0, np.nan, np.inf, -0.0])
    compare(x, np.array([1.0, -np.nan, np.inf, 0.0]), status=0)
    assert "1 of 4" in compare(x, np.array([1.5, np.nan, np.inf, 0]), status=1)
    assert "inf" in compare(x, np.array([1.0, np.nan, -np.inf, 0]), "--tolerance", 9, status=1)
    assert "float64 [4] | float64 [2, 2]" in compare(x, x.reshape(2, 2), status=1)
    assert "int32" in compare(np.arange(3), np.arange(3, dtype=np.int32), status=1)
    large = np.array([2**62])
    assert "1 of 1" in compare(large, large + 1, status=1)  # doubles cannot tell these apart
    compare(np.array([1 + 2j]), np.array([1 + 2.5j]), status=1)
    compare(np.array([1 + 2j]), np.array([1 + 2.5j]), "--tolerance", 0.5, status=0)
    compare(np.zeros((0, 3)), np.zeros((0, 3)), status=0)
    np.savez(tmp_path / "a.npz", p=x, q=x)
    np.savez(tmp_path / "b.npz", p=x, r=x)
    assert command("diff", tmp_path / "a.npz", tmp_path / "b.npz", status=1).splitlines() == [
        "q: in the first alone", "r: in the second alone"]


def test_bad_words(saved):
    model = saved / "lenet.pdmodel"
    for words, said in [
            ([], "no command"), (["show"], "unknown command 'show'"), (["inspect"], "no model"),
            (["inspect", model, "--jason"], "unknown option --jason"), (["inspect", model, model], "one file too many"),
            (["inspect", model, "--json", "--dot"], "choose one"), (["inspect", "nowhere"], "nowhere"),
            (["run", model], "input 'x', float32 [-1, 1, 28, 28], is missing"),
            (["run", model, "--shape", "y=1"], "no input 'y'; it has 'x'"),
            (["run", model, "--shape", "x"], "expected NAME=2,3"), (["run", model, "--shape", "x=1,a"], "lengths"),
            (["run", model, "--shape", "x=-1,1"], "lengths"), (["run", model, "--shape", "x=1,2,28,28"], "expects"),
            (["run", model, "--shape", "x=99999999999,1,28,28"], ""), (["run", model, "--times"], "expected a value"),
            (["run", model, "--times", "0"], "at least 1"), (["run", model, "--input", "x=none.npy"], "none.npy"),
            (["run", model, "--shape", "x=1,1,28,28", "--passes", "nonsense"], "nonsense"),
            (["run", model, "--shape", "x=1,1,28,28", "--save", "/nowhere/o.npz"], "cannot write"),
            (["run", model, "--shape", "x=1,1,28,28", "--shape", "x=1,1,28,28"], "twice"),
            (["diff", model], "two files"), (["diff", model, model, "--tolerance", "x"], "number"),
            (["diff", model, saved], "")]:
        assert said in command(*words, status=2)
    assert "proa inspect" in command("--help") and paddle.version.proa_version in command("--version")


def test_bad_arrays(saved, tmp_path):
    def refused(said, archive=False):
        words = ["--inputs", tmp_path / "x.npz"] if archive else ["--input", f"x={tmp_path / 'x.npy'}"]
        assert said in command("run", saved / "lenet", *words, status=2)

    x = np.zeros((1, 1, 28, 28), np.float32)
    np.save(tmp_path / "x.npy", x)
    whole = (tmp_path / "x.npy").read_bytes()
    for size in [0, 5, 9, 11, 60, 127, 128, len(whole) - 1]:  # cut off anywhere
        (tmp_path / "x.npy").write_bytes(whole[:size])
        refused("cut off" if size >= 128 else "not a whole .npy file")
    (tmp_path / "x.npy").write_bytes(whole + b"?")
    refused("more than")
    for a, b, said in [(b"(1, 1, 28, 28)", b"(9, 9999999999", ""), (b"28, 28)", b"28, -8)", "lengths"),
                       (b"'<f4'", b"'<q4'", "'<q4' is none of Proa's"), (b"'shape'", b"'shade'", "no shape"),
                       (b"(1, 1, 28, 28)", b"(9, 9999, 999)", "cut off")]:
        (tmp_path / "x.npy").write_bytes(whole.replace(a, b, 1))
        refused(said)
    for wrong, said in [(x.astype("float64"), "expects float32"), (x.astype("uint16"), "astype"), (x[0], "expects"),
                        (np.array(["text"]), "none of Proa's"), (np.zeros(3, [("a", "f4")]), "no plain numbers")]:
        np.save(tmp_path / "x.npy", wrong)
        refused(said)
    np.savez_compressed(tmp_path / "x.npz", x=x)
    refused("compressed", archive=True)
    np.savez(tmp_path / "x.npz", y=x)
    refused("no input 'y'", archive=True)
    np.savez(tmp_path / "x.npz", x=x)
    whole = (tmp_path / "x.npz").read_bytes()
    flipped = bytearray(whole)
    flipped[1000] ^= 1
    for data, said in [(whole[:-30], "directory"), (whole[:100], "directory"), (b"", "too short"),
                       (bytes(flipped), "checksum")]:
        (tmp_path / "x.npz").write_bytes(data)
        refused(said, archive=True)


def test_damaged_bytes_never_crash(saved, tmp_path):
    """Each byte of an archive's and an array's header in turn, and of a model at many places."""
    np.savez(tmp_path / "a.npz", x=np.zeros(2, np.float32))
    np.save(tmp_path / "a.npy", np.zeros(2, np.float32))
    model = (saved / "loop.pdmodel").read_bytes()
    (tmp_path / "a.pdmodel").write_bytes(model)
    shutil.copy(saved / "loop.pdiparams", tmp_path / "a.pdiparams")
    random = np.random.RandomState(0)
    for name, words, tries in [("a.npz", ["diff", "a.npz", "a.npz"], 60), ("a.npy", ["diff", "a.npy", "a.npy"], 60),
                               ("a.pdmodel", ["inspect", "a.pdmodel", "--json"], 60)]:
        whole = (tmp_path / name).read_bytes()
        for at in random.randint(0, len(whole), tries):
            data = bytearray(whole)
            data[at] ^= 1 << random.randint(8)
            (tmp_path / name).write_bytes(data)
            done = subprocess.run([str(PROA), *words], capture_output=True, cwd=tmp_path, timeout=60)
            assert done.returncode in (0, 2) and bool(done.stderr) == (done.returncode == 2), (name, at, done)
        (tmp_path / name).write_bytes(whole[:len(whole) // 2])
        assert command(*words, status=2, cwd=tmp_path)
        (tmp_path / name).write_bytes(whole)


def quantize(*words):
    return subprocess.run([PROA, "quantize", *map(str, words)], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("options, kept", [((), 2), (("--weights", "tensor", "--algo", "avg"), 2), (("--bits", "6"), 2), (("--algo", "KL"), 2)])
def test_quantize(tmp_path, options, kept):
    """A model with scales of samples answers as the float one does, but for the grid of its integers."""
    from proa import inference
    paddle.seed(3)
    net = nn.Sequential(nn.Conv2D(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    net.eval()
    paddle.jit.save(net, str(tmp_path / "m"), input_spec=[InputSpec([None, 1, 8, 8], "float32", "x")])
    x = np.random.RandomState(0).rand(16, 1, 8, 8).astype("float32")
    for i in range(2):
        np.savez(tmp_path / f"batch{i}.npz", x=x[8 * i:8 * i + 8])
    data = [w for i in range(2) for w in ("--data", tmp_path / f"batch{i}.npz")]
    done = quantize(tmp_path / "m.pdmodel", *data, "--output", tmp_path / "q", *options)
    assert done.returncode == 0 and f"{kept} operators, 2 activations and 2 weights" in done.stdout, done.stdout + done.stderr
    config = inference.Config(str(tmp_path / "q.pdmodel"), str(tmp_path / "q.pdiparams"))
    predictor = inference.create_predictor(config)
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.run()
    have, want = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu(), net(paddle.to_tensor(x)).numpy()
    assert 0 < np.abs(have - want).max() < (0.15 if {"--bits", "KL"} & set(options) else 0.04) * np.abs(want).max()
    scale = float(paddle.load(str(tmp_path / "q"))["x@scale"][0])
    assert scale == pytest.approx(expected_scale(x, options), rel=2e-3)


def expected_scale(x, options):
    from proa.quantization.program.thresholds import cal_kl_threshold
    if "avg" in options:
        return (x[:8].max() + x[8:].max()) / 2
    if "KL" not in options:
        return x.max()
    return cal_kl_threshold(np.histogram(np.abs(x), 2048, (0, x.max()))[0], x.max() / 2048, 8)


def test_quantize_says_what_is_wrong(tmp_path):
    net = nn.Sequential(nn.Linear(4, 3))
    paddle.jit.save(net, str(tmp_path / "m"), input_spec=[InputSpec([None, 4], "float32", "x")])
    np.savez(tmp_path / "other.npz", y=np.zeros((2, 4), "float32"))
    np.savez(tmp_path / "wide.npz", x=np.zeros((2, 7), "float32"))
    model = tmp_path / "m.pdmodel"
    for words, said in (((model,), "expected proa quantize"),
                        ((model, "--data", tmp_path / "other.npz", "--output", tmp_path / "q"), "no array 'x'"),
                        ((model, "--data", tmp_path / "wide.npz", "--output", tmp_path / "q"), "7"),
                        ((model, "--data", tmp_path / "wide.npz", "--output", tmp_path / "q", "--algo", "emd"), "abs_max, avg or KL"),
                        ((model, "--data", tmp_path / "wide.npz", "--output", tmp_path / "q", "--algo", "KL", "--bits", "12"), "2 to 11"),
                        ((model, "--data", tmp_path / "wide.npz", "--output", tmp_path / "q", "--bits", "40"), "2 to 16")):
        done = quantize(*words)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not (tmp_path / "q.pdmodel").exists()
