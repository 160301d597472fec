"""INT8 execution: which ops the pass makes of quantized nets, and that they answer as the simulation does."""
import collections

import numpy as np
import pytest

import proa as paddle
from proa import inference, nn
from proa.nn.quant.quant_layers import FakeQuantMovingAverageAbsMax
from proa.quantization import HistQuantizer, ImperativePTQ, PerChannelAbsmaxQuantizer, PTQConfig
from proa.static import InputSpec


class Chain(nn.Layer):
    """Pooling and reshaping between quantized products."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.MaxPool2D(2),
                                  nn.Conv2D(8, 8, 3, padding=1, groups=8), nn.ReLU6(), nn.Conv2D(8, 4, 1), nn.Hardswish())
        self.out = nn.Linear(64, 5)

    def forward(self, x):
        return self.out(paddle.flatten(self.body(x), 1))


class Residual(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.one, self.two = (nn.Conv2D(i, 8, 3, padding=1) for i in (3, 8, 8))
        self.norm, self.last = nn.BatchNorm2D(8), nn.Conv2D(8, 6, 1)

    def forward(self, x):
        x = nn.functional.relu(self.first(x))
        x = nn.functional.relu(x + self.norm(self.two(nn.functional.relu(self.one(x)))))
        return self.last(x)


class Joined(nn.Layer):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.last = nn.Conv2D(3, 8, 1), nn.Conv2D(3, 4, 3, padding=1), nn.Conv2D(12, 6, 1)

    def forward(self, x):
        return self.last(paddle.concat([nn.functional.relu(self.one(x)), nn.functional.relu(self.two(x))], 1))


class Sliced(nn.Layer):
    """Parts of a product's result, of one sign and of either, go to another product."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = nn.Conv2D(3, 8, 1), nn.Conv2D(4, 6, 1), nn.Linear(6, 5)

    def forward(self, x):
        x = self.second(nn.functional.relu(self.first(x))[:, 2:6, 1:7])
        return self.out(paddle.flatten(x, 2)[:, :, 3])


NETS = {
    "sliced": (Sliced, {"quantize_int8": 1, "conv2d_int8": 2, "linear_int8": 1, "slice": 2}),
    "chain": (Chain, {"quantize_int8": 1, "conv2d_int8": 3, "max_pool2d_int8": 1, "linear_int8": 1, "flatten": 1}),
    "residual": (Residual, {"quantize_int8": 1, "conv2d_int8": 4}),
    "joined": (Joined, {"quantize_int8": 1, "conv2d_int8": 3, "concat": 1}),
}


def saved(folder, make):
    """A calibrated net, and an input."""
    paddle.seed(3)
    net = make()
    net.eval()
    ptq = ImperativePTQ(PTQConfig(HistQuantizer(), PerChannelAbsmaxQuantizer()))
    net = ptq.quantize(net)
    random = np.random.RandomState(1)
    batches = [random.randn(4, 3, 8, 8).astype("float32") for _ in range(3)]
    for x in batches:
        net(paddle.to_tensor(x))
    ptq.save_quantized_model(net, str(folder / "net"), input_spec=[InputSpec([None, 3, 8, 8], "float32", "x")])
    return str(folder / "net"), batches[0]


def predicted(prefix, x, int8, **options):
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    config.switch_ir_optim(options.get("ir_optim", int8))
    for name in options.get("without", ()):
        config.delete_pass(name)
    if int8:
        config.enable_mkldnn_int8(options.get("types", set()))
        assert config.mkldnn_int8_enabled()
    predictor = inference.create_predictor(config)
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu(), predictor._core.ops()


@pytest.fixture(params=[1, 1 << 16])
def deferred_bytes(request):
    """Size from which weights are read when they are first used."""
    paddle.set_flags({"FLAGS_deferred_bytes": request.param})
    yield
    paddle.set_flags({"FLAGS_deferred_bytes": 1 << 16})


@pytest.mark.parametrize("name", NETS)
def test_answers_as_the_simulation(tmp_path, name, deferred_bytes):
    make, made = NETS[name]
    prefix, x = saved(tmp_path, make)
    want, _ = predicted(prefix, x, False)
    have, ops = predicted(prefix, x, True)
    counts = collections.Counter(ops)
    assert {op: counts[op] for op in made} == made, counts
    assert not [op for op in ops if op.startswith("fake_") or op in ("conv2d_fused", "linear_fused")], ops
    away = np.abs(have - want) / np.abs(want).max()
    assert away.mean() <= 3e-3 and away.max() <= 0.02, (away.mean(), away.max())


class RoundedTwice(nn.Layer):
    """Quantizers behind an op and, on another grid, before the next."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.last = nn.Conv2D(3, 8, 3, padding=1), nn.Conv2D(8, 8, 1), nn.Conv2D(8, 4, 1)
        self.behind = nn.LayerList([FakeQuantMovingAverageAbsMax() for _ in range(2)])
        for quantizer, largest in zip(self.behind, (1.1, 0.7)):
            quantizer._scale.set_value(np.array([largest], "float32"))

    def forward(self, x):
        x = nn.functional.relu(self.behind[0](self.one(x)))
        return self.last(nn.functional.relu6(self.behind[1](self.two(x))))


def test_values_rounded_twice(tmp_path):
    """Both roundings are kept, so that only rounding edges differ from the simulation."""
    prefix, x = saved(tmp_path, RoundedTwice)
    want, _ = predicted(prefix, x, False)
    have, ops = predicted(prefix, x, True)
    counts = collections.Counter(ops)
    assert counts["conv2d_int8"] == 3 and counts["quantize_int8"] == 3, counts
    assert not [op for op in ops if op.startswith(("fake_", "relu"))], ops
    away = np.abs(have - want) / np.abs(want).max()
    assert away.mean() <= 1e-4 and away.max() <= 0.02, (away.mean(), away.max())


def observer(largest):
    """A quantizer that knows its scale."""
    made = FakeQuantMovingAverageAbsMax()
    made._scale.set_value(np.array([largest], "float32"))
    return made


class Averaged(nn.Layer):
    """Mean pooling of quantized values, by windows and over the whole image."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = nn.Conv2D(3, 8, 3, padding=1), nn.Conv2D(8, 6, 1), nn.Linear(6, 5)
        self.one, self.two = observer(1.5), observer(1.2)

    def forward(self, x):
        x = nn.functional.avg_pool2d(self.one(nn.functional.relu(self.first(x))), 3, 2, 1)
        x = nn.functional.adaptive_avg_pool2d(self.two(self.second(x)), 1)
        return self.out(paddle.flatten(x, 1))


class Summed(nn.Layer):
    """Sums of two quantized branches, with and without a ReLU behind them."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.last = nn.Conv2D(3, 8, 3, padding=1), nn.Conv2D(3, 8, 1), nn.Conv2D(8, 8, 1), nn.Conv2D(8, 4, 1)
        self.at = nn.LayerList([observer(v) for v in (1.5, 1.1, 1.6, 0.9)])

    def forward(self, x):
        x = nn.functional.relu(self.at[0](nn.functional.relu(self.a(x))) + self.at[1](self.b(x)))
        return self.last(self.at[2](x) + self.at[3](self.c(x)))


class Normed(nn.Layer):
    """Batch norm behind rounded results, once with a residual behind it."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.last = nn.Conv2D(3, 8, 3, padding=1), nn.Conv2D(8, 8, 1), nn.Conv2D(8, 4, 1)
        self.norms = nn.LayerList([nn.BatchNorm2D(8) for _ in range(2)])
        self.at = nn.LayerList([observer(v) for v in (1.5, 1.1)])
        for i, norm in enumerate(self.norms):
            norm._mean.set_value(np.linspace(-0.3, 0.2, 8).astype("float32"))
            norm._variance.set_value(np.linspace(0.3, 1.2 + i, 8).astype("float32"))

    def forward(self, x):
        x = nn.functional.relu(self.norms[0](self.at[0](self.one(x))))
        return self.last(nn.functional.relu(x + self.norms[1](self.at[1](self.two(x)))))


class Enlarged(nn.Layer):
    """A small U-Net: pooled, enlarged by transposed convolutions, joined with what was there."""

    def __init__(self):
        super().__init__()
        self.down, self.deep = nn.Conv2D(3, 8, 3, padding=1), nn.Conv2D(8, 16, 3, padding=1)
        self.up, self.norm, self.join = nn.Conv2DTranspose(16, 8, 2, 2), nn.BatchNorm2D(8), nn.Conv2D(16, 6, 3, padding=1)
        self.wide = nn.Conv2DTranspose(6, 4, 3, 2, padding=1, output_padding=1)

    def forward(self, x):
        side = nn.functional.relu(self.down(x))
        deep = nn.functional.relu(self.deep(nn.functional.max_pool2d(side, 2)))
        up = nn.functional.relu(self.norm(self.up(deep)))
        return self.wide(nn.functional.relu(self.join(paddle.concat([side, up], 1))))


SUMS = {
    "averaged": (Averaged, {"avg_pool2d_int8": 2, "conv2d_int8": 2, "linear_int8": 1}),
    "summed": (Summed, {"add_int8": 2, "conv2d_int8": 4}),
    "normed": (Normed, {"affine_int8": 2, "conv2d_int8": 3, "quantize_int8": 1}),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_and_means(tmp_path, name):
    """Integers go through mean pooling and sums of quantized branches: only rounding edges differ."""
    make, made = SUMS[name]
    prefix, x = saved(tmp_path, make)
    want, _ = predicted(prefix, x, False)
    have, ops = predicted(prefix, x, True)
    counts = collections.Counter(ops)
    assert {op: counts[op] for op in made} == made, counts
    assert not [op for op in ops if op.startswith(("fake_", "relu", "add_f", "avg_pool2d_f", "adaptive"))], ops
    away = np.abs(have - want) / np.abs(want).max()
    assert away.mean() <= 2e-3 and away.max() <= 0.02, (away.mean(), away.max())
    _, ops = predicted(prefix, x, True, types={"conv2d"})
    assert "conv2d_int8" in ops and not {"add_int8", "avg_pool2d_int8"} & set(ops)
    _, ops = predicted(prefix, x, True, types={"fc"})
    assert not {"add_int8", "avg_pool2d_int8", "affine_int8", "conv2d_int8"} & set(ops)


@pytest.mark.parametrize("onnx_format", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
def test_transposed_convolutions(tmp_path, onnx_format, per_channel):
    """A net trained with quantizers: all convolutions, both pools and the concatenation run on integers."""
    from proa.quantization import ImperativeQuantAware
    paddle.seed(3)
    net = Enlarged()
    quantizer = ImperativeQuantAware(weight_quantize_type="channel_wise_abs_max" if per_channel else "abs_max", onnx_format=onnx_format)
    quantizer.quantize(net)
    random = np.random.RandomState(1)
    batches = [random.randn(4, 3, 8, 8).astype("float32") for _ in range(30)]
    for x in batches:
        net(paddle.to_tensor(x))
    net.eval()
    quantizer.save_quantized_model(net, str(tmp_path / "net"), input_spec=[InputSpec([None, 3, 8, 8], "float32", "x")])
    want, _ = predicted(str(tmp_path / "net"), batches[0], False)
    have, ops = predicted(str(tmp_path / "net"), batches[0], True)
    counts = collections.Counter(ops)
    assert counts["conv2d_transpose_int8"] == 2 and counts["conv2d_int8"] == 3 and counts["max_pool2d_int8"] == 1, counts
    assert not [op for op in ops if op.startswith("fake_") or "linear" in op or op in ("relu", "batch_norm", "conv2d_transpose")], ops
    away = np.abs(have - want) / np.abs(want).max()
    assert away.mean() <= 5e-3 and away.max() <= 0.04, (away.mean(), away.max())


class Attention(nn.Layer):
    """Products of activations: of either sign, of probabilities, and with x transposed."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        q, k, v = (paddle.transpose(paddle.reshape(f(x), [-1, 12, 2, 8]), [0, 2, 1, 3]) for f in (self.q, self.k, self.v))
        heads = paddle.matmul(nn.functional.softmax(paddle.matmul(q, k, transpose_y=True) * 0.35), v)
        x = self.out(paddle.reshape(paddle.transpose(heads, [0, 2, 1, 3]), [-1, 12, 16]))
        return paddle.matmul(x, x, transpose_x=True)


def quantized_attention(folder):
    """Attention by PostTrainingQuantization, in either layout; an input."""
    from proa.static.quantization import PostTrainingQuantization
    paddle.seed(3)
    net = Attention()
    net.eval()
    paddle.jit.save(net, str(folder / "float"), input_spec=[InputSpec([None, 12, 16], "float32", "x")])
    x = np.random.RandomState(1).randn(16, 12, 16).astype("float32")
    paddle.enable_static()
    try:
        for onnx_format in (False, True):
            quantizer = PostTrainingQuantization(
                executor=paddle.static.Executor(), scope=paddle.static.global_scope(), model_dir=str(folder),
                model_filename="float.pdmodel", params_filename="float.pdiparams", algo="abs_max", batch_size=4,
                sample_generator=lambda: ([row] for row in x), quantizable_op_type=["mul", "matmul_v2"], onnx_format=onnx_format)
            quantizer.quantize()
            quantizer.save_quantized_model(str(folder / str(onnx_format)), "net.pdmodel", "net.pdiparams")
    finally:
        paddle.disable_static()
    return x


def test_products_of_activations(tmp_path, deferred_bytes):
    """Attention's two products, with the factor between them, and one with x transposed run on integers."""
    x = quantized_attention(tmp_path)
    for layout in ("False", "True"):
        prefix = str(tmp_path / layout / "net")
        want, _ = predicted(prefix, x, False)
        have, ops = predicted(prefix, x, True)
        counts = collections.Counter(ops)
        assert counts["matmul_int8"] == 3 and counts["linear_int8"] == 4 and not counts["matmul"] and not counts["scale"], ops
        away = np.abs(have - want) / np.abs(want).max()
        assert away.mean() <= 3e-3 and away.max() <= 0.02, (away.mean(), away.max())
        _, ops = predicted(prefix, x, True, types={"conv2d"})
        assert "matmul_int8" not in ops and "matmul" in ops


def test_is_asked_for(tmp_path):
    """Without the switch, and without passes, the model stays a simulation; a pass that is left out stays out."""
    prefix, x = saved(tmp_path, Chain)
    simulated, ops = predicted(prefix, x, False)
    assert not [op for op in ops if op.endswith("_int8")]
    same, ops = predicted(prefix, x, True, ir_optim=False)
    assert not [op for op in ops if op.endswith("_int8")]
    np.testing.assert_array_equal(same, simulated)
    plain, ops = predicted(prefix, x, False, ir_optim=True)
    assert not [op for op in ops if op.endswith("_int8")]
    _, ops = predicted(prefix, x, True, without=["layout"])
    assert "conv2d_int8" in ops and "transpose" not in ops


@pytest.mark.parametrize("types, made, kept", [
    ({"conv2d", "depthwise_conv2d", "pool2d"}, {"conv2d_int8": 3, "max_pool2d_int8": 1}, "linear_int8"),
    ({"depthwise_conv2d"}, {"conv2d_int8": 1, "quantize_int8": 1}, "max_pool2d_int8"),
    ({"conv2d", "fc"}, {"conv2d_int8": 3, "linear_int8": 1}, "max_pool2d_int8"),
    ({"matmul_v2"}, {"linear_int8": 1}, "conv2d_int8"),
    ({"pool2d", "fusion_gru"}, {}, "quantize_int8"),
])
def test_op_types(tmp_path, types, made, kept):
    """Ops of other types than the listed ones stay in float; results stay the simulation's."""
    prefix, x = saved(tmp_path, Chain)
    want, _ = predicted(prefix, x, False)
    have, ops = predicted(prefix, x, True, types=types)
    counts = collections.Counter(ops)
    assert {op: counts[op] for op in made} == made and not counts[kept], counts
    assert np.abs(have - want).max() <= 0.02 * np.abs(want).max()
    config = inference.Config()
    with pytest.raises(TypeError, match="expected a set of op types"):
        config.enable_mkldnn_int8("conv2d")
    assert not config.mkldnn_int8_enabled()


def test_changes_no_float_model(tmp_path):
    paddle.seed(3)
    net = Chain()
    net.eval()
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[InputSpec([None, 3, 8, 8], "float32", "x")])
    x = np.random.RandomState(0).randn(2, 3, 8, 8).astype("float32")
    want, ops = predicted(str(tmp_path / "net"), x, False, ir_optim=True)
    have, again = predicted(str(tmp_path / "net"), x, True)
    assert ops == again
    np.testing.assert_array_equal(have, want)


def float_net(folder):
    paddle.seed(3)
    net = Chain()
    net.eval()
    paddle.jit.save(net, str(folder / "net"), input_spec=[InputSpec([None, 3, 8, 8], "float32", "x")])
    return str(folder / "net"), np.random.RandomState(1).randn(16, 3, 8, 8).astype("float32")


def calibrated(prefix, x, data, types=None, names=False, algo="KL"):
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    with pytest.raises(RuntimeError, match="call enable_quantizer first"):
        config.quantizer_config()
    config.enable_mkldnn()
    config.enable_quantizer()
    config.switch_specify_input_names(names)
    config._core.set("QUANTIZER_ALGO", ("ABS_MAX", "AVG", "KL").index(algo))
    config.quantizer_config().set_quant_data(data)
    config.quantizer_config().set_quant_batch_size(len(x))
    config.quantizer_config().set_enabled_op_types(types or set())
    predictor = inference.create_predictor(inference.Config(config))
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu(), predictor._core.ops()


def test_quantizer_calibrates_when_the_predictor_is_made(tmp_path):
    prefix, x = float_net(tmp_path)
    want, _ = predicted(prefix, x, False, ir_optim=True)
    sample = paddle.fluid.core.PaddleTensor(x, "x")
    have, ops = calibrated(prefix, x, [sample], algo="ABS_MAX")
    counts = collections.Counter(ops)
    assert counts["conv2d_int8"] == 3 and counts["linear_int8"] == 1 and not [op for op in ops if op.startswith("fake")], ops
    away = np.abs(have - want) / np.abs(want).max()
    assert 0 < away.mean() <= 0.01 and away.max() <= 0.05, (away.mean(), away.max())
    by_name, _ = calibrated(prefix, x, [sample], names=True, algo="ABS_MAX")
    np.testing.assert_array_equal(by_name, have)
    clipped, again = calibrated(prefix, x, [sample])  # few samples of a normal distribution: outliers are clipped
    assert again == ops and 1e-4 < (np.abs(clipped - want) / np.abs(want).max()).mean() <= 0.1
    _, ops = calibrated(prefix, x, [x], {"fc"})
    counts = collections.Counter(ops)
    assert counts["linear_int8"] == 1 and not counts["conv2d_int8"], ops


def test_quantizer_says_what_is_wrong(tmp_path, capfd):
    prefix, x = float_net(tmp_path)
    with pytest.raises(ValueError, match="has 2 tensors; the model has 1 inputs"):
        calibrated(prefix, x, [x, x])
    other = paddle.fluid.core.PaddleTensor(x, "y")
    with pytest.raises(Exception, match="samples is named 'x'"):
        calibrated(prefix, x, [other], names=True)
    with pytest.raises(TypeError, match="float64"):
        paddle.fluid.core.PaddleTensor(x.astype("float64"))
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    config.enable_quantizer()
    capfd.readouterr()
    assert "conv2d_int8" not in inference.create_predictor(config)._core.ops()
    assert "no warm-up data" in capfd.readouterr().err


def test_batches_of_other_sizes(tmp_path):
    prefix, x = saved(tmp_path, Residual)
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    config.enable_mkldnn_int8()
    predictor = inference.create_predictor(config)
    whole = None
    for rows in (4, 1, 3, 4):
        predictor.get_input_handle("x").copy_from_cpu(x[:rows])
        predictor.run()
        have = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
        whole = have if whole is None else whole
        np.testing.assert_allclose(have, whole[:rows], rtol=0, atol=0.02 * np.abs(whole).max())


def test_bfloat16(tmp_path, capfd):
    """On CPUs that multiply bfloat16 numbers, results are near; on others the same. Outputs stay float32."""
    paddle.seed(3)
    net = Chain()
    net.eval()
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[InputSpec([None, 3, 8, 8], "float32", "x")])
    x = np.random.RandomState(0).randn(2, 3, 8, 8).astype("float32")
    want, ops = predicted(str(tmp_path / "net"), x, False, ir_optim=True)
    has = "avx512_bf16" in open("/proc/cpuinfo").read()
    for types in (set(), {"fc"}):
        config = inference.Config(str(tmp_path / "net.pdmodel"), str(tmp_path / "net.pdiparams"))
        config.enable_mkldnn_bfloat16()
        config.set_bfloat16_op(types)
        predictor = inference.create_predictor(config)
        predictor.get_input_handle("x").copy_from_cpu(x)
        predictor.run()
        have = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
        assert have.dtype == np.float32
        assert np.abs(have - want).max() <= (0.03 if has else 0) * np.abs(want).max()
        assert has or predictor._core.ops() == ops
        if has and not types:  # it is in the weights
            assert "batch_norm" not in predictor._core.ops()
    assert capfd.readouterr().err.count("does not multiply bfloat16") == (0 if has else 1)
