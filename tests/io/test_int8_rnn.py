"""LSTM and GRU on INT8 weights: quantized without samples, near the float model and near Paddle's simulation."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import oracle
import proa as paddle
from conftest import BUILD, NEEDS_PADDLE
from proa import inference, nn
from proa.nn.quant.quant_layers import FakeQuantMovingAverageAbsMax
from proa.static import InputSpec

HERE = pathlib.Path(__file__).resolve().parent


class Tagger(nn.Layer):
    """A recurrent net over sequences of any length, perhaps with a quantizer before it."""

    def __init__(self, kind, quantized_input=False, **options):
        super().__init__()
        self.body = getattr(nn, kind)(24, 40, **options)
        self.out = nn.Linear(80 if options.get("direction") == "bidirect" else 40, 5)
        self.before = FakeQuantMovingAverageAbsMax() if quantized_input else None
        if quantized_input:
            self.before._scale.set_value(np.array([3.0], "float32"))

    def forward(self, x, lengths):
        x = self.before(x) if self.before else x
        y, _ = self.body(x, sequence_length=lengths)
        return self.out(y)


NETS = {
    "lstm": ("LSTM", {}),
    "gru": ("GRU", {}),
    "deep_lstm": ("LSTM", {"num_layers": 3}),
    "both_ways_gru": ("GRU", {"num_layers": 2, "direction": "bidirect"}),
    "both_ways_lstm": ("LSTM", {"direction": "bidirect"}),
    "time_major": ("LSTM", {"time_major": True}),
    "quantized_input": ("GRU", {"quantized_input": True}),
}


def saved(folder, name):
    kind, options = NETS[name]
    paddle.seed(3)
    net = Tagger(kind, **options)
    net.eval()
    spec = [InputSpec([None, None, 24], "float32", "x"), InputSpec([None], "int32", "lengths")]
    paddle.jit.save(net, str(folder / "net"), input_spec=spec)
    random = np.random.RandomState(1)
    x = random.randn(7, 7, 24).astype("float32")
    return str(folder / "net"), [x, np.array([7, 3, 1, 7, 5, 2, 6], "int32")]


def predicted(prefix, inputs, prepare):
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    config.disable_glog_info()  # what is said once is for test_int8.py
    prepare(config)
    predictor = inference.create_predictor(config)
    for name, x in zip(predictor.get_input_names(), inputs):
        predictor.get_input_handle(name).copy_from_cpu(x)
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu(), predictor._core.ops()


def near(have, want, mean, most):
    away = np.abs(have - want) / np.abs(want).max()
    assert away.mean() <= mean and away.max() <= most, (away.mean(), away.max())


@pytest.mark.parametrize("name", NETS)
def test_quantizer_needs_no_samples(tmp_path, name):
    prefix, inputs = saved(tmp_path, name)
    want, ops = predicted(prefix, inputs, lambda config: None)
    assert ops.count("rnn") == 1
    have, ops = predicted(prefix, inputs, lambda config: config.enable_quantizer())
    assert ops.count("rnn_int8") == 1 and "rnn" not in ops and not [op for op in ops if op.startswith("fake_channel")], ops
    assert (ops.count("quantize_int8") > 0) == (name == "quantized_input")  # other inputs are quantized row by row
    near(have, want, 5e-3, 0.03)
    for rows in (1, 2):
        part = [inputs[0][:, :rows] if name == "time_major" else inputs[0][:rows], inputs[1][:rows]]
        few, _ = predicted(prefix, part, lambda config: config.enable_quantizer())
        whole = have[:, :rows] if name == "time_major" else have[:rows]
        np.testing.assert_allclose(few, whole, rtol=0, atol=1e-5)


@pytest.mark.parametrize("level", [0, 1])
def test_sums_are_exact_at_every_level(tmp_path, level):
    """Without VNNI the same integers are summed: only the cells' activations are rounded otherwise."""
    prefix, inputs = saved(tmp_path, "both_ways_gru")
    np.savez(tmp_path / "in.npz", *inputs)
    script = """if True:
        import sys, numpy as np
        sys.path[:0] = sys.argv[1:3]
        import test_int8_rnn as t
        with np.load(sys.argv[3] + "/in.npz") as f:
            y, _ = t.predicted(sys.argv[3] + "/net", [f["arr_0"], f["arr_1"]], lambda config: config.enable_quantizer())
        np.save(sys.argv[3] + "/out.npy", y)
    """
    done = subprocess.run([sys.executable, "-c", script, HERE, HERE.parent, tmp_path], timeout=120, capture_output=True, text=True,
                          env={**os.environ, "FLAGS_cpu_level": str(level), "PYTHONPATH": str(BUILD / "python")})
    assert done.returncode == 0, done.stderr
    want, _ = predicted(prefix, inputs, lambda config: config.enable_quantizer())
    near(np.load(tmp_path / "out.npy"), want, 1e-4, 5e-3)


def quantized_file(folder, prefix, *words):
    subprocess.run([BUILD / "bin/proa", "quantize", prefix + ".pdmodel", "--output", folder / "quantized", *words], check=True, timeout=60)
    return str(folder / "quantized")


@NEEDS_PADDLE
@pytest.mark.parametrize("name", ["deep_lstm", "both_ways_gru"])
@pytest.mark.parametrize("weights", ["channel", "tensor"])
def test_near_paddles_simulation(tmp_path, name, weights):
    """The command's file in real Paddle is a simulation with rounded weights, which integers follow."""
    prefix, inputs = saved(tmp_path, name)
    np.savez(tmp_path / "in.npz", *inputs)
    made = quantized_file(tmp_path, prefix, "--weights", weights)
    script = """if True:
        import sys, numpy as np, paddle
        sys.path.insert(0, sys.argv[1])
        net = paddle.jit.load(sys.argv[2])
        with np.load(sys.argv[3]) as f:
            np.save(sys.argv[4], net(*[paddle.to_tensor(f[k]) for k in f.files]).numpy())
    """
    oracle.ask("-c", script, HERE, made, tmp_path / "in.npz", tmp_path / "out.npy")
    paddles = np.load(tmp_path / "out.npy")
    simulated, ops = predicted(made, inputs, lambda config: config.switch_ir_optim(False))
    assert "rnn" in ops
    near(simulated, paddles, 1e-6, 1e-5)
    have, ops = predicted(made, inputs, lambda config: config.enable_mkldnn_int8())
    assert "rnn_int8" in ops
    near(have, paddles, 4e-3, 0.02)


def test_which_stay_in_float(tmp_path):
    prefix, inputs = saved(tmp_path, "lstm")
    made = quantized_file(tmp_path, prefix)
    for types, op in (({"fusion_lstm"}, "rnn_int8"), ({"rnn"}, "rnn_int8"), ({"conv2d"}, "rnn")):
        _, ops = predicted(made, inputs, lambda config, types=types: config.enable_mkldnn_int8(types))
        assert op in ops, (types, ops)
    net = nn.Sequential(nn.Linear(4, 3))
    paddle.jit.save(net, str(tmp_path / "linear"), input_spec=[InputSpec([None, 4], "float32", "x")])
    done = subprocess.run([BUILD / "bin/proa", "quantize", tmp_path / "linear.pdmodel", "--output", tmp_path / "q"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 2 and "expected samples" in done.stderr, done.stderr
