"""paddle.onnx.export: functions and layers as ONNX models, which the package onnx checks and ONNX Runtime runs: results
are Proa's own."""
import re

import numpy as np
import onnx
import onnxruntime
import pytest

import proa as paddle
from proa.jit.save import capture
from proa.jit.static_function import StaticFunction
from proa.quantization import ImperativeQuantAware
from conftest import ROOT
from onnx_cases import CASES
from onnx_models import MODELS, OpenSizes

OPSETS = 7, 9, 11, 13, 17, 20
OPEN_OPSETS = 9, 17  # with an open dim, where the case allows one
LAYER_OPSETS = {"bert": (11, 17)}  # cumsum came with 11

TESTED_APART = {"quantize_linear", "dequantize_linear", "fake_quantize_dequantize_moving_average_abs_max", "uniform", "gaussian",
                "pylayer"}  # the last: tests/c/test_onnx.c


def program_of(function, specs):
    """The program that is exported."""
    layer = function if isinstance(function, paddle.nn.Layer) else None
    return capture(StaticFunction(layer.forward if layer else function, name="forward"), specs, layer)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def flat(results):
    return [one for result in results for one in flat(result)] if isinstance(results, (list, tuple)) else [results]


def specs_of(arrays, dynamic=False):
    return [paddle.static.InputSpec([None, *a.shape[1:]] if dynamic and k == 0 else a.shape, str(a.dtype), f"in{k}")
            for k, a in enumerate(arrays)]


def check_export(layer, specs, opset, path):
    paddle.onnx.export(layer, str(path), input_spec=specs, opset_version=opset)
    model = onnx.load(f"{path}.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [o.version for o in model.opset_import] == [opset]
    assert model.producer_name == "proa" and model.ir_version in (7, 8)
    return session(f"{path}.onnx")


def compare(run, arrays, expected, rtol=1e-5, atol=1e-5):
    got = run.run(None, {i.name: a for i, a in zip(run.get_inputs(), arrays)})
    assert len(got) == len(expected)
    for ours, theirs in zip(expected, got):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (ours.shape, ours.dtype, theirs.shape, theirs.dtype)
        np.testing.assert_allclose(theirs, ours, rtol=rtol, atol=atol)


def refused(case, specs, opset, least, path):
    """Below the least opset the error names a later one, at most the least."""
    with pytest.raises(NotImplementedError, match="opset_version") as error:
        paddle.onnx.export(case.function, str(path), input_spec=specs, opset_version=opset)
    named = int(re.search(r"opset_version=(\d+)$", str(error.value))[1])
    assert opset < named <= least, str(error.value)
    assert not path.with_suffix(".onnx").exists()


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_op(case, tmp_path):
    """Each opset, from the least that the op can have on."""
    with paddle.no_grad():
        expected = [t.numpy() for t in flat(case.function(*map(paddle.to_tensor, case.arrays)))]
    for opset in OPSETS:
        dynamic = opset in OPEN_OPSETS and case.open is not None
        least = case.open or case.least if dynamic else case.least
        specs, path = specs_of(case.arrays, dynamic), tmp_path / f"{opset}_{dynamic}"
        if opset < least:
            refused(case, specs, opset, least, path)
        else:
            compare(check_export(case.function, specs, opset, path), case.arrays, expected, case.rtol, case.atol)


# ---- layers --------------------------------------------------------------------------------


def randomized(layer):
    """Statistics of batch norm that are not the initial ones, so that a swapped mean and variance shows."""
    random = np.random.RandomState(8)
    for name, buffer in layer.named_buffers():
        if name.endswith(("_mean", "_variance")):
            buffer.set_value(random.uniform(0.3, 0.7, buffer.shape).astype("float32"))
    return layer


@pytest.mark.parametrize("name", MODELS)
def test_layer(name, tmp_path):
    """In training mode when it is exported, with an open batch; the mode stays, and other batch sizes run."""
    paddle.seed(2)
    layer, arrays = MODELS[name]()
    randomized(layer)
    layer.eval()
    with paddle.no_grad():
        expected = [t.numpy() for t in flat(layer(*map(paddle.to_tensor, arrays)))]
    layer.train()
    axis = 1 if getattr(getattr(layer, "net", None), "time_major", False) else 0
    specs = [paddle.static.InputSpec([None if k == axis else n for k, n in enumerate(a.shape)], str(a.dtype), f"in{i}")
             for i, a in enumerate(arrays)]
    for opset in LAYER_OPSETS.get(name, (9, 17)):
        run = check_export(layer, specs, opset, tmp_path / f"m{opset}")
        compare(run, arrays, expected, 1e-4, 1e-5)
        one = [a[:1] if axis == 0 else a[:, :1] for a in arrays]
        run.run(None, {i.name: a for i, a in zip(run.get_inputs(), one)})
    assert layer.training


@pytest.mark.parametrize("opset", [11, 17])
def test_open_sizes(opset, tmp_path):
    """One model serves images of several sizes."""
    layer = OpenSizes()
    run = check_export(layer, [paddle.static.InputSpec([None, 3, None, None], "float32", "in0")], opset, tmp_path / "m")
    layer.eval()
    for shape in (2, 3, 9, 12), (1, 3, 16, 7):
        x = np.random.RandomState(1).rand(*shape).astype("float32")
        with paddle.no_grad():
            compare(run, [x], [t.numpy() for t in layer(paddle.to_tensor(x))], 1e-4, 1e-5)


@pytest.mark.parametrize("onnx_format", [True, False])
def test_quantized(onnx_format, tmp_path):
    """A model of quantization-aware training, as it is loaded again; a value on a rounding edge may move by a step."""
    paddle.seed(1)
    x = np.random.RandomState(0).randn(32, 1, 6, 6).astype("float32")
    net = paddle.nn.Sequential(paddle.nn.Conv2D(1, 4, 3, padding=1), paddle.nn.ReLU(), paddle.nn.Flatten(), paddle.nn.Linear(144, 5))
    quantizer = ImperativeQuantAware(weight_quantize_type="channel_wise_abs_max", onnx_format=onnx_format)
    quantizer.quantize(net)
    for _ in range(3):
        net(paddle.to_tensor(x))
    net.eval()
    quantizer.save_quantized_model(net, str(tmp_path / "q"), input_spec=[paddle.static.InputSpec([None, 1, 6, 6], "float32", "x")])
    loaded = paddle.jit.load(str(tmp_path / "q"))
    expected = loaded(paddle.to_tensor(x)).numpy()
    run = check_export(loaded, specs_of([x], True), 13, tmp_path / "m")
    assert "QuantizeLinear" in {n.op_type for n in onnx.load(str(tmp_path / "m.onnx")).graph.node}
    (got,) = run.run(None, {"in0": x})
    away = np.abs(got - expected) / np.abs(expected).max()
    assert (away <= 1e-5).mean() >= 0.9 and away.max() <= 0.02


def random_numbers(x):
    return paddle.uniform([400, 50], min=-1.0, max=3.0) + 0 * x, paddle.normal(2.0, 3.0, [400, 50]) + 0 * x


def random_like(x):
    rows = paddle.shape(x)[0]
    return paddle.uniform([rows, 50], min=-1.0, max=3.0), paddle.normal(2.0, 3.0, [rows, 50])


@pytest.mark.parametrize("function, shape, dynamic", [(random_numbers, (1, 1), False), (random_like, (400, 1), True)])
def test_random(function, shape, dynamic, tmp_path):
    x = np.zeros(shape, "float32")
    uniform, normal = check_export(function, specs_of([x], dynamic), 9, tmp_path / "m").run(None, {"in0": x})
    assert uniform.shape == normal.shape == (400, 50)
    assert -1 <= uniform.min() < -0.9 and 2.9 < uniform.max() <= 3 and abs(uniform.mean() - 1) < 0.05
    assert abs(normal.mean() - 2) < 0.1 and abs(normal.std() - 3) < 0.1


# ---- names, outputs, errors ----------------------------------------------------------------


def linear(tmp_path, **options):
    net = paddle.nn.Linear(3, 2)
    options = {"input_spec": [paddle.static.InputSpec([None, 3], "float32", "image")], **options}
    paddle.onnx.export(net, str(tmp_path / "m"), **options)
    return net, onnx.load(str(tmp_path / "m.onnx"))


def dims(value):
    return [d.dim_value or d.dim_param for d in value.type.tensor_type.shape.dim]


def test_names_and_dims(tmp_path):
    assert paddle.onnx.export(paddle.nn.Linear(3, 2), str(tmp_path / "n"), [paddle.static.InputSpec([None, 3])]) is None
    net, model = linear(tmp_path)
    (x,), (y,) = model.graph.input, model.graph.output
    assert (x.name, dims(x)) == ("image", ["image_0", 3])
    assert dims(y) == ["", 2]
    assert model.opset_import[0].version == 9
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    np.testing.assert_array_equal(stored[net.weight.name], net.weight.numpy())
    np.testing.assert_array_equal(stored[net.bias.name], net.bias.numpy())
    assert all(t.raw_data for t in model.graph.initializer)


def test_folder_is_made_and_path_like(tmp_path):
    linear(tmp_path / "a" / "b")
    assert (tmp_path / "a/b/m.onnx").exists()


def test_what_predicts_is_written(tmp_path):
    """Dropout goes, batch norm is by its statistics, constants are folded."""
    net = paddle.nn.Sequential(paddle.nn.Conv2D(3, 4, 3), paddle.nn.BatchNorm2D(4), paddle.nn.Dropout(0.5), paddle.nn.ReLU())
    paddle.onnx.export(net, str(tmp_path / "m"), [paddle.static.InputSpec([None, 3, 8, 8])])
    model = onnx.load(str(tmp_path / "m.onnx"))
    assert [n.op_type for n in model.graph.node] == ["Conv", "BatchNormalization", "Relu"]
    assert net.training


def outputs_of(function, arrays, path, **configs):
    paddle.onnx.export(function, str(path), input_spec=specs_of(arrays), **configs)
    onnx.checker.check_model(str(path) + ".onnx", full_check=True)
    run = session(f"{path}.onnx")
    return run.run(None, {f"in{k}": a for k, a in enumerate(arrays)})


def test_outputs_that_no_op_makes(tmp_path):
    """An input, a parameter, and one result twice are outputs, too."""
    x, w = np.ones((2, 3), "float32"), paddle.to_tensor(np.arange(3, dtype="float32"))

    def function(x):
        y = x + w
        return x, w, y, y

    got = outputs_of(function, [x], tmp_path / "m")
    for one, want in zip(got, (x, w.numpy(), x + w.numpy(), x + w.numpy())):
        np.testing.assert_array_equal(one, want)


def test_output_spec(tmp_path):
    def function(x):
        return x + 1, paddle.linalg.svd(x)[1]  # the second has no mapping

    x = np.ones((2, 3), "float32")
    (got,) = outputs_of(function, [x], tmp_path / "m", output_spec=[0], enable_onnx_checker=True, unknown_configuration=1)
    np.testing.assert_array_equal(got, x + 1)


def test_the_last_call_where_specs_are_few(tmp_path):
    class Either(paddle.nn.Layer):
        def forward(self, x, y, first):
            return x + 1 if first else y

    layer, x = Either(), paddle.ones([2])
    paddle.jit.to_static(layer)
    out = layer(x, x, first=True)
    paddle.onnx.export(layer, str(tmp_path / "m"), input_spec=[x], output_spec=[out])
    run = session(tmp_path / "m.onnx")
    assert len(run.get_inputs()) == 1
    compare(run, [x.numpy()], [out.numpy()])
    layer(x, x, first=False)
    with pytest.raises((RuntimeError, ValueError), match="y"):
        paddle.onnx.export(layer, str(tmp_path / "n"), input_spec=[x])


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_dtypes(dtype, tmp_path):
    x = np.linspace(-2, 2, 12).reshape(3, 4).astype(dtype)

    def function(x):
        return paddle.tanh(x) * 2 + 1, paddle.mean(x, axis=1)

    with paddle.no_grad():
        expected = [t.numpy() for t in function(paddle.to_tensor(x))]
    for one, want in zip(outputs_of(function, [x], tmp_path / "m", opset_version=13), expected):
        assert one.dtype == want.dtype
        np.testing.assert_allclose(one, want, rtol=1e-12 if dtype == "float64" else 2e-3)


def test_two_exports_are_equal(tmp_path):
    net, one = linear(tmp_path)
    paddle.onnx.export(net, str(tmp_path / "m"), [paddle.static.InputSpec([None, 3], "float32", "image")])
    assert onnx.load(str(tmp_path / "m.onnx")).graph.node == one.graph.node


def test_every_missing_op_is_named(tmp_path):
    def function(x):
        return paddle.linalg.svd(x)[1] + paddle.lgamma(paddle.cumprod(x, dim=1))[:, 0]

    with pytest.raises(NotImplementedError) as error:
        paddle.onnx.export(function, str(tmp_path / "m"), [paddle.static.InputSpec([3, 3])])
    assert all(op in str(error.value) for op in ("svd", "lgamma", "cumprod"))
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("path, error", [("folder/", ValueError), ("", ValueError), (None, TypeError)])
def test_bad_path(path, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error):
        paddle.onnx.export(paddle.nn.Linear(3, 2), path, [paddle.static.InputSpec([None, 3])])


@pytest.mark.parametrize("options, error, text", [
    ({"opset_version": 6}, ValueError, "7 to 20"), ({"opset_version": 21}, ValueError, "7 to 20"),
    ({"opset_version": 9.0}, TypeError, "opset_version must be an int"), ({"opset_version": True}, TypeError, "opset_version"),
    ({"input_spec": 3}, TypeError, "input_spec"), ({"input_spec": None}, ValueError, "needs input_spec"),
    ({"output_spec": [7, 8]}, ValueError, "output_spec"), ({"output_spec": 7}, TypeError, "output_spec")])
def test_bad_arguments(options, error, text, tmp_path):
    with pytest.raises(error, match=text) as e:
        linear(tmp_path, **options)
    assert "onnx.export" in str(e.value)


def test_not_a_layer(tmp_path):
    with pytest.raises(TypeError, match="onnx.export: expected a Layer"):
        paddle.onnx.export(3, str(tmp_path / "m"))


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "m.onnx").mkdir()
    with pytest.raises(OSError, match="m.onnx"):
        linear(tmp_path)


# ---- coverage ------------------------------------------------------------------------------


def rules():
    """The ops that io/onnx has a rule for, by its tables."""
    found = set()
    for file in (ROOT / "io/onnx").glob("lower_*.c"):
        table = file.read_text().partition("const onnx_rule onnx_rules_")[2]
        found |= set(re.findall(r'(?:\{|NODE\()\s*"(\w+)"', table))
        found |= {stem + rank for stem in re.findall(r'EACH_RANK\("(\w+)"', table) for rank in ("1d", "2d", "3d")}
    return found


def test_every_rule_has_a_case():
    """A rule that no case reaches is untested; test_quantized and test_random reach the others."""
    assert len(rules()) > 200
    reached = set()
    for case in CASES:
        program = program_of(case.function, specs_of(case.arrays))
        reached |= {op for block in range(program.blocks()) for op, _ in program.ops(block)}
    layer, arrays = MODELS["lstm"]()
    reached |= {op for op, _ in program_of(layer, specs_of(arrays)).ops(0)}
    missing = rules() - reached - TESTED_APART
    assert not missing, f"rules without a case: {sorted(missing)}"
