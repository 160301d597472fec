"""Quantized models that real Paddle wrote (trained with quantizers, or calibrated; both file layouts) run here as its own
predictor runs them without passes."""
import pathlib

import numpy as np
import pytest

import oracle
from conftest import NEEDS_PADDLE, once
from proa import inference

HERE = pathlib.Path(__file__).resolve().parent
NAMES = [f"{net}_{kind}" for net in ("conv", "mlp") for kind in (
    "qat_abs_max_old", "qat_abs_max_onnx", "qat_channel_wise_abs_max_old", "qat_channel_wise_abs_max_onnx",
    "ptq_KL_old:model", "ptq_abs_max_old:model", "ptq_hist_onnx:model", "ptq_avg_onnx:model")]

pytestmark = NEEDS_PADDLE


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """(folder, what quantize_models.py wrote)."""
    folder = once(tmp_path_factory, "quantized", lambda out: oracle.ask(HERE / "inference/quantize_models.py", out, timeout=600))
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
