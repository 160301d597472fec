"""Trains a static program with quantizers, freezes and saves it: quantize_program.py FOLDER DIGITS WEIGHTS ACTIVATIONS, the
latter by Paddle's names of how they are quantized. Prints what it found as JSON."""
import json
import os
import sys

import numpy as np
import paddle
from paddle.fluid import core
from paddle.fluid.contrib.slim.quantization import (AddQuantDequantPass, OutScaleForInferencePass, OutScaleForTrainingPass,
                                                    QuantizationFreezePass, QuantizationTransformPass)
from paddle.fluid.framework import IrGraph

folder, data, weights, acts = sys.argv[1:5]
table = np.loadtxt(os.path.join(data, "digits_train.csv"), delimiter=",", skiprows=1)
images, labels = (table[:, :64].reshape(-1, 1, 8, 8) / 16).astype("float32"), table[:, 64:].astype("int64")
paddle.enable_static()
paddle.seed(4)
main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    x, y = paddle.static.data("x", [None, 1, 8, 8]), paddle.static.data("y", [None, 1], "int64")
    h = paddle.nn.functional.relu(paddle.static.nn.conv2d(x, 6, 3, padding=1))
    h = paddle.nn.functional.max_pool2d(h, 2, 2)
    h = paddle.nn.functional.relu(paddle.static.nn.conv2d(h, 12, 3, padding=1))
    out = paddle.static.nn.fc(paddle.flatten(h, 1), 10)
    loss = paddle.mean(paddle.nn.functional.cross_entropy(out, y))
    test = main.clone(for_test=True)
    paddle.optimizer.Adam(0.003).minimize(loss)
place = paddle.CPUPlace()
exe, scope = paddle.static.Executor(place), paddle.static.global_scope()
exe.run(startup)


def epoch(program, seed):
    order, seen = np.random.RandomState(seed).permutation(len(images)), []
    for i in range(0, len(order), 64):
        part = order[i:i + 64]
        seen.append(float(np.asarray(exe.run(program, feed={"x": images[part], "y": labels[part]}, fetch_list=[loss.name])[0])))
    return float(np.mean(seen))


def accuracy(program, name):
    answers = exe.run(program, feed={"x": images, "y": labels}, fetch_list=[name])[0]
    return float((np.asarray(answers).argmax(1) == labels[:, 0]).mean())


losses = [epoch(main, i) for i in range(12)]
whole = accuracy(test, out.name)
train_graph, test_graph = IrGraph(core.Graph(main.desc), for_test=False), IrGraph(core.Graph(test.desc), for_test=True)
options = dict(weight_quantize_type=weights, activation_quantize_type=acts,
               quantizable_op_type=["conv2d", "depthwise_conv2d", "mul", "matmul", "matmul_v2"])
for graph in (train_graph, test_graph):
    QuantizationTransformPass(scope, place, **options).apply(graph)
    AddQuantDequantPass(scope, place, quantizable_op_type=["pool2d"]).apply(graph)
OutScaleForTrainingPass(scope, place).apply(train_graph)
OutScaleForTrainingPass(scope, place).apply(test_graph)
trained = train_graph.to_program()
tuned = [epoch(trained, 20 + i) for i in range(4)]
simulated = accuracy(test_graph.to_program(), out.name)
OutScaleForInferencePass(scope).apply(test_graph)
QuantizationFreezePass(scope, place, weight_quantize_type=weights).apply(test_graph)
frozen = test_graph.to_program()
answers = exe.run(frozen, feed={"x": images[:200], "y": labels[:200]}, fetch_list=[out.name])[0]
block, prefix = frozen.global_block(), os.path.join(folder, "frozen")
paddle.static.save_inference_model(prefix, [block.var("x")], [block.var(out.name)], exe, program=frozen)
np.savez(prefix + ".npz", x=images[:200], answers=np.asarray(answers))
print(json.dumps({"whole": whole, "simulated": simulated, "frozen": accuracy(frozen, out.name), "losses": [losses[0], *tuned],
                  "ops": [op.type for op in block.ops]}))
