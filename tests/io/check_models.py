#!/usr/bin/env python3
"""Runs exported models in real Paddle 2.6.2 and compares with recorded outputs.

    check_models.py PREFIX…       (run with the oracle's Python)

For each PREFIX: PREFIX.pdmodel + .pdiparams, and PREFIX.npz with in0, … and out0, …. Loads them in
paddle.inference with ir_optim off and on, and in paddle.jit.load; prints the largest difference relative to
the output's range, and fails beyond 1e-5 (2e-5 with ir_optim, whose fusions change the order of sums).
"""
import os
import sys

os.environ.setdefault("GLOG_minloglevel", "3")
import numpy as np
import paddle
from paddle import inference


def predict(prefix, inputs, optimize):
    params = prefix + ".pdiparams"
    config = inference.Config(prefix + ".pdmodel", params if os.path.exists(params) else "")
    config.switch_ir_optim(optimize)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    names = predictor.get_input_names()
    for name, value in zip(names, inputs):
        handle = predictor.get_input_handle(name)
        handle.reshape(value.shape)
        handle.copy_from_cpu(value)
    predictor.run()
    return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]


def load(prefix, inputs):
    layer = paddle.jit.load(prefix)
    layer.eval()
    out = layer(*[paddle.to_tensor(v) for v in inputs])
    return [v.numpy() for v in (out if isinstance(out, (list, tuple)) else [out])]


def difference(got, expected):
    if len(got) != len(expected):
        return float("inf")
    worst = 0.0
    for g, e in zip(got, expected):
        if g.shape != e.shape:
            return float("inf")
        if e.size:
            scale = max(float(np.max(np.abs(e))), 1e-6)
            worst = max(worst, float(np.max(np.abs(g.astype("float64") - e.astype("float64")))) / scale)
    return worst


def main():
    failed = 0
    for prefix in sys.argv[1:]:
        data = np.load(prefix + ".npz")
        inputs = [data[f"in{i}"] for i in range(sum(k.startswith("in") for k in data.files))]
        expected = [data[f"out{i}"] for i in range(sum(k.startswith("out") for k in data.files))]
        for how, run, limit in (("inference", lambda: predict(prefix, inputs, False), 1e-5),
                                ("inference, ir_optim", lambda: predict(prefix, inputs, True), 2e-5),
                                ("jit.load", lambda: load(prefix, inputs), 1e-5)):
            worst = difference(run(), expected)
            failed += not worst <= limit
            print(f"{prefix} {how}: {worst:.2e}{'' if worst <= limit else '  FAILED'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
