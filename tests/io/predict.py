#!/usr/bin/env python3
"""Runs an exported model in real Paddle, both ways it loads one: predict.py PREFIX INPUT.npy OUT.npz"""
import sys

import numpy as np
import paddle
from paddle import inference


def main(prefix, source, out):
    x = np.load(source)
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    handle.copy_from_cpu(x)
    predictor.run()
    predicted = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    loaded = paddle.jit.load(prefix)
    loaded.eval()
    np.savez(out, predictor=predicted, jit=loaded(paddle.to_tensor(x)).numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
