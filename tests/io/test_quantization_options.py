"""Options of the quantization tools that no exchange of models with Paddle shows: folding, correction, generators, shared
scales, skipping, weights alone; and what they refuse."""
import numpy as np
import pytest

import proa as paddle
from proa import inference, nn
from proa.framework.program_desc import OpDesc, ProgramDesc
from proa.quantization import AbsmaxQuantizer, ImperativePTQ, ImperativeQuantAware, PerChannelAbsmaxQuantizer, PTQConfig
from proa.static import InputSpec
from proa.static.quantization import PostTrainingQuantization, WeightQuantization

SPEC = [InputSpec([None, 1, 8, 8], "float32", "x")]
TYPES = ["conv2d", "depthwise_conv2d", "mul", "matmul_v2"]


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.relu = nn.Conv2D(1, 6, 3, padding=1, bias_attr=False), nn.BatchNorm2D(6), nn.ReLU()
        self.pool, self.out = nn.AvgPool2D(4), nn.Linear(24, 5)

    def forward(self, x):
        return self.out(paddle.flatten(self.pool(self.relu(self.norm(self.conv(x)))), 1))


def images(n=32, seed=0):
    return np.random.RandomState(seed).rand(n, 1, 8, 8).astype("float32")


def known(x=None):
    """A net whose normalization has seen data."""
    paddle.seed(3)
    net = Net()
    for i in range(20):
        net(paddle.to_tensor(images(seed=i)))
    net.eval()
    return net


def answers(prefix, x):
    predictor = inference.create_predictor(inference.Config(f"{prefix}.pdmodel", f"{prefix}.pdiparams"))
    predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(x)
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


def desc_of(prefix):
    with open(f"{prefix}.pdmodel", "rb") as f:
        return ProgramDesc.parse(f.read())


def near(have, want, away=0.05):
    return np.abs(have - want).max() <= away * np.abs(want).max()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder, net = tmp_path_factory.mktemp("float"), known()
    paddle.jit.save(net, str(folder / "m"), input_spec=SPEC)
    x = images(seed=50)
    return folder, x, net(paddle.to_tensor(x)).numpy()


def calibrate(saved, to, **options):
    options.setdefault("batch_generator", lambda: ([images(seed=s)] for s in range(3)))
    options.setdefault("quantizable_op_type", TYPES)
    paddle.enable_static()
    try:
        quantizer = PostTrainingQuantization(None, str(saved[0]), "m.pdmodel", "m.pdiparams", **options)
        quantizer.quantize()
        quantizer.save_quantized_model(str(to), model_filename="q.pdmodel")
    finally:
        paddle.disable_static()
    return str(to / "q")


def test_layers_are_folded(saved, tmp_path):
    ptq = ImperativePTQ(PTQConfig(AbsmaxQuantizer(), PerChannelAbsmaxQuantizer()))
    net = ptq.quantize(known(), fuse=True, fuse_list=[["conv", "norm"]])
    assert near(net(paddle.to_tensor(saved[1])).numpy(), saved[2], 1e-4)
    ptq.save_quantized_model(net, str(tmp_path / "q"), input_spec=SPEC)
    assert "batch_norm" not in [op.type for op in desc_of(tmp_path / "q").main.ops]
    assert near(answers(tmp_path / "q", saved[1]), saved[2])


def test_training_folds_first(saved):
    net = known()
    ImperativeQuantAware(weight_quantize_type="channel_wise_abs_max", fuse_conv_bn=True).quantize(net)
    assert not any(isinstance(layer, nn.BatchNorm2D) for layer in net.sublayers())
    net.train()
    for i in range(40):
        net(paddle.to_tensor(images(seed=i)))
    net.eval()
    assert near(net(paddle.to_tensor(saved[1])).numpy(), saved[2])


@pytest.mark.parametrize("options", [
    {"bias_correction": True, "algo": "abs_max"}, {"algo": "ptf", "onnx_format": True}, {"algo": "avg", "batch_nums": 1},
    {"algo": "abs_max", "quantizable_op_type": [*TYPES, "pool2d"]}, {"algo": "abs_max", "is_full_quantize": True},
    {"algo": "abs_max", "activation_quantize_type": "abs_max"}, {"algo": "abs_max", "activation_bits": 6, "weight_bits": 6},
    {"algo": "abs_max", "batch_generator": None, "sample_generator": lambda: iter(images(64)), "batch_size": 16}])
def test_options(saved, tmp_path, options):
    q = calibrate(saved, tmp_path, **options)
    assert any("quantize" in op.type for op in desc_of(q).main.ops)
    coarse = options["algo"] == "avg" or "activation_bits" in options or "is_full_quantize" in options  # or clipped
    assert near(answers(q, saved[1]), saved[2], 0.2 if coarse else 0.08)


def test_ranges_are_notes(saved, tmp_path):
    q = calibrate(saved, tmp_path, algo="min_max")
    conv = next(op for op in desc_of(q).main.ops if op.type == "conv2d")
    assert conv.attr("x.min") >= 0 and 0.9 < conv.attr("x.max") <= 1 and np.array_equal(answers(q, saved[1]), answers(saved[0] / "m", saved[1]))


def test_tensors_are_skipped_and_shared(saved, tmp_path):
    conv = next(op for op in desc_of(saved[0] / "m").main.ops if op.type == "conv2d")
    q = calibrate(saved, tmp_path / "a", algo="abs_max", skip_tensor_list=[conv.input("Filter")[0]])
    assert [op.type for op in desc_of(q).main.ops].count("fake_quantize_range_abs_max") == 1
    product = next(op for op in desc_of(saved[0] / "m").main.ops if op.type == "matmul_v2")
    q = calibrate(saved, tmp_path / "b", algo="abs_max", same_scale_tensor_list=[["x", product.input("X")[0]]])
    with open(q + ".pdiparams", "rb") as f:
        from proa.static.params import split
        values = split(f.read(), desc_of(q).persistables())
    assert values["x@scale"] == values[product.input("X")[0] + "@scale"]


def test_weights_alone(saved, tmp_path):
    paddle.enable_static()
    try:
        WeightQuantization(str(saved[0]), "m.pdmodel", "m.pdiparams").quantize_weight_to_int(
            str(tmp_path), "w.pdmodel", "w.pdiparams", quantizable_op_type=["conv2d"], weight_bits=16,
            weight_quantize_type="abs_max", threshold_rate=1e-6, generate_test_model=True)
        WeightQuantization(str(saved[0]), "m.pdmodel", "m.pdiparams").convert_weight_to_fp16(str(tmp_path / "half"))
    finally:
        paddle.disable_static()
    kept = desc_of(tmp_path / "quantized_model/w").main
    conv = next(op for op in kept.ops if op.type == "conv2d")
    name = conv.input("Filter")[0]
    assert kept.vars[name].dtype == "int16" and len(conv.attr(name + "_quant_scale")) == 1
    assert near(answers(tmp_path / "test_model/w", saved[1]), saved[2], 0.01)
    assert (tmp_path / "half/m.pdiparams").stat().st_size < 0.8 * (saved[0] / "m.pdiparams").stat().st_size


@pytest.mark.parametrize("onnx_format", [False, True])
def test_rounding_is_learned(saved, tmp_path, onnx_format):
    """adaround keeps the operators' results nearer than the nearest integers do."""
    errors, kept = [], []
    for kind in ("round", "adaround"):
        prefix = calibrate(saved, tmp_path / kind, algo="abs_max", weight_bits=3, round_type=kind, learning_rate=0.02,
                           onnx_format=onnx_format)
        errors.append(float(((answers(prefix, saved[1]) - saved[2]) ** 2).mean()))
        kept.append(desc_of(prefix).main.ops)
    assert errors[1] < 0.8 * errors[0], errors
    assert [op.type for op in kept[0]] == [op.type for op in kept[1]]


def test_refused(saved):
    for error, options in ((AssertionError, {"algo": "median"}), (AssertionError, {"quantizable_op_type": ["nothing"]}),
                           (AssertionError, {"round_type": "up"}), (AssertionError, {"weight_quantize_type": "x"})):
        with pytest.raises(error):
            calibrate(saved, saved[0], **options)
    with pytest.raises(ValueError, match="no samples"):
        calibrate(saved, saved[0], batch_generator=lambda: iter(()))
    with pytest.raises(ValueError, match="needs samples"):
        PostTrainingQuantization(None, str(saved[0]), "m.pdmodel", "m.pdiparams")
    with pytest.raises(NotImplementedError, match="optimize_model"):
        calibrate(saved, saved[0], optimize_model=True)


def test_descriptions_are_kept(saved):
    """Unedited parts are written back byte for byte; attributes of every kind are read as they were set."""
    data = (saved[0] / "m.pdmodel").read_bytes()
    assert ProgramDesc.parse(data).serialize() == data
    op = OpDesc("x", {"X": ["a", "b"]}, {"Out": ["c"]})
    values = {"i": -3, "f": 0.5, "s": "text", "is": [1, -2], "fs": [1.5, -2.5], "ss": ["p", "q"], "b": True, "bs": [True, False]}
    for name, value in values.items():
        op.set_attr(name, value)
    again = OpDesc.parse(op.serialize())
    assert {n: again.attr(n) for n in values} == values and again.input("X") == ["a", "b"] and again.output("Out") == ["c"]
    for end in range(0, len(data), 97):
        try:
            ProgramDesc.parse(data[:end])
        except ValueError:
            pass
