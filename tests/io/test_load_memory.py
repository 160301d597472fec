"""Loading a model whose weights become something else keeps their floats in memory one weight at a time."""
import os

import numpy as np
import proa as paddle
import pytest
from proa import _core, inference, nn
from proa.quantization import AbsmaxQuantizer, ImperativePTQ, PerChannelAbsmaxQuantizer, PTQConfig
from proa.static import InputSpec

SIDE, LAYERS = 512, 8
WEIGHT = SIDE * SIDE * 4  # bytes of a layer's floats


def save(net, x, prefix):
    paddle.jit.save(net, prefix, [InputSpec(list(x.shape), "float32", "x")])


def save_quantized(net, x, prefix):
    ptq = ImperativePTQ(PTQConfig(AbsmaxQuantizer(), PerChannelAbsmaxQuantizer()))
    net = ptq.quantize(net)
    net(x)
    ptq.save_quantized_model(net, prefix, input_spec=[InputSpec(list(x.shape), "float32", "x")])


# how the model is saved, what its config asks for, and the part of the floats' bytes that its own weights take
CASES = {"int8": (save_quantized, lambda c: c.enable_mkldnn_int8(), 0.25),
         "bfloat16": (save, lambda c: c.enable_mkldnn_bfloat16(), 0.5)}


@pytest.mark.parametrize("name", CASES)
def test_peak_of_loading(tmp_path, name):
    write, enable, part = CASES[name]
    net = nn.Sequential(*(nn.Linear(SIDE, SIDE) for _ in range(LAYERS)))
    net.eval()
    x, prefix = paddle.rand([4, SIDE]), str(tmp_path / "net")
    write(net, x, prefix)
    del net
    os.utime(prefix + ".pdiparams", (10 ** 9, 10 ** 9))  # weights of a file written just now are read at once
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    enable(config)
    _core.peak_bytes(True)
    before = _core.peak_bytes(False)
    predictor = inference.create_predictor(config)
    peak = (_core.peak_bytes(False) - before) / WEIGHT
    assert peak <= part * LAYERS + 4, peak
    predictor.get_input_handle("x").copy_from_cpu(x.numpy())
    predictor.run()
    assert np.isfinite(predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()).all()
