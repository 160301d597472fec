"""Runs exported models through paddle.inference, Paddle's or Proa's (python -m proa): predict.py MODELS OUT.npz NAME…

With and without optimizing passes, for several batch sizes with one predictor, from files and (the last batch) from
memory. Writes the outputs as <model>/<how>/<batch>/<output>, and the names of inputs and outputs.
"""
import sys

import numpy as np
from paddle import inference

BATCHES = (1, 3, 2, 7)


def configured(config, ir_optim):
    config.switch_ir_optim(ir_optim)
    config.disable_glog_info()
    config.disable_mkldnn()
    config.enable_memory_optim()
    config.set_cpu_math_library_num_threads(1)
    return inference.create_predictor(config)


def from_memory(prefix, ir_optim):
    with open(prefix + ".pdmodel", "rb") as model, open(prefix + ".pdiparams", "rb") as params:
        buffers = model.read(), params.read()
    config = inference.Config()
    config.set_model_buffer(buffers[0], len(buffers[0]), buffers[1], len(buffers[1]))
    assert config.model_from_memory()
    return configured(config, ir_optim)


def predict(predictor, inputs):
    for name, x in zip(predictor.get_input_names(), inputs):
        handle = predictor.get_input_handle(name)
        handle.reshape(x.shape)
        handle.copy_from_cpu(x)
        assert handle.shape() == list(x.shape)
    assert predictor.run() is None
    handles = [predictor.get_output_handle(name) for name in predictor.get_output_names()]
    results = [handle.copy_to_cpu() for handle in handles]
    assert [list(r.shape) for r in results] == [handle.shape() for handle in handles]
    return results


def main(models, out, names):
    found = {}
    for name in names:
        prefix = f"{models}/{name}"
        given = np.load(prefix + ".npz")
        samples = [given[key] for key in sorted(given.files) if key.startswith("in")]
        for ir_optim in (True, False):
            predictor = configured(inference.Config(prefix + ".pdmodel", prefix + ".pdiparams"), ir_optim)
            memory = from_memory(prefix, ir_optim)
            for batch in BATCHES:
                inputs = [np.resize(x, (batch, *x.shape[1:])) for x in samples]
                for i, y in enumerate(predict(predictor, inputs)):
                    found[f"{name}/{'ir' if ir_optim else 'plain'}/{batch}/{i}"] = y
            for i, y in enumerate(predict(memory, inputs)):
                found[f"{name}/{'ir' if ir_optim else 'plain'}/memory/{i}"] = y
        found[f"{name}/names"] = np.array(predictor.get_input_names() + predictor.get_output_names())
    np.savez(out, **found)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
