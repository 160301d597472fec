"""Quantized models that real Paddle wrote (trained with quantizers, or calibrated; both file layouts) run here as its own
predictor runs them without passes."""
import os
import pathlib
import subprocess

import numpy as np
import pytest

from proa import inference

HERE = pathlib.Path(__file__).resolve().parent
ORACLE = os.environ.get("PROA_ORACLE", str(HERE.parent.parent / ".venv-oracle/bin/python"))
NAMES = [f"{net}_{kind}" for net in ("conv", "mlp") for kind in (
    "qat_abs_max_old", "qat_abs_max_onnx", "qat_channel_wise_abs_max_old", "qat_channel_wise_abs_max_onnx",
    "ptq_KL_old:model", "ptq_abs_max_old:model", "ptq_hist_onnx:model", "ptq_avg_onnx:model")]

pytestmark = pytest.mark.skipif(not os.path.exists(ORACLE), reason="real Paddle is not installed")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """(folder, what quantize_models.py wrote)."""
    folder = tmp_path_factory.mktemp("quantized")
    apart = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    apart.update(GLOG_minloglevel="3", PYTHONWARNINGS="ignore")
    done = subprocess.run([ORACLE, str(HERE / "inference/quantize_models.py"), str(folder)], env=apart, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, np.load(folder / "paddle.npz")


@pytest.mark.parametrize("ir_optim", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_equals_paddles_simulation(models, name, ir_optim):
    folder, results = models
    prefix = str(folder / name.replace(":", "/"))
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    config.switch_ir_optim(ir_optim)
    predictor = inference.create_predictor(config)
    predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(results["x"])
    predictor.run()
    have, want = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu(), results[name]
    away = np.abs(have - want) / np.abs(want).max()
    assert have.shape == want.shape
    # a value on a rounding edge moves what depends on it by a step: rare, and small
    assert (away <= 1e-5).mean() >= 0.9 and away.max() <= 0.02


def test_weights_are_folded(models):
    """With passes no quantizer of a constant is left."""
    prefix = str(models[0] / "mlp_qat_channel_wise_abs_max_old")
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    config.switch_ir_optim(False)
    ops = inference.create_predictor(config)._core.ops()
    assert [op for op in ops if "quantize" in op] == ["fake_quantize_dequantize_moving_average_abs_max"] * 3  # inputs
