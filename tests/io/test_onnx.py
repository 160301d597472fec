"""paddle.onnx.export: functions and layers as ONNX models, which the package onnx checks and ONNX Runtime runs: results
are Proa's own."""
import re

import numpy as np
import onnx
import onnxruntime
import pytest

import proa as paddle
from onnx_cases import CASES
from onnx_models import MODELS

OPSETS = 7, 9, 11, 13, 17, 20
OPEN_OPSETS = 9, 17
LAYER_OPSETS = {"bert": (11, 17)}  # cumsum came with 11


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
    """Each opset, from the least that the op can have on, and an open dim in some."""
    with paddle.no_grad():
        expected = [t.numpy() for t in flat(case.function(*map(paddle.to_tensor, case.arrays)))]
    settings = [(opset, False, case.least) for opset in OPSETS]
    if case.open is not None:
        settings += [(opset, True, case.open or case.least) for opset in OPEN_OPSETS]
    for opset, dynamic, least in settings:
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
