"""Spellings in which the three frameworks differ, so that each workload is written once: Paddle() for Proa and real
Paddle, and Torch(). Names that they share (matmul, relu, F.conv2d, …) are reached through `t` (the module) and
`F`. Needs NumPy and the framework alone."""
import importlib
import math
import os
import subprocess
import tempfile

import numpy as np


class Paddle:
    def __init__(self, module):
        self.t = importlib.import_module(module)
        self.F, self.nn = self.t.nn.functional, self.t.nn
        self.Module, self.name = self.nn.Layer, module
        self.fused_causal = module == "proa"

    def tensor(self, array, grad=False):
        return self.t.to_tensor(array, stop_gradient=not grad)

    def clear(self, tensor):
        tensor.clear_gradient(False)

    def backward(self, out, seed):
        out.backward(seed)

    def permute(self, x, order):
        return self.t.transpose(x, order)

    def cast(self, x, dtype):
        return x.astype(dtype)

    def concat(self, parts, axis):
        return self.t.concat(parts, axis)

    def thirds(self, width):
        """Arguments of split beside the tensor that make three parts of [.., 3 · width]; the axis follows."""
        return (3,)

    def gather(self, x, index):
        return self.t.index_select(x, index, 0)

    def scatter_add(self, x, index, rows):
        return self.t.scatter(x, index, rows, overwrite=False)

    def add_(self, x, y):
        return x.add_(y)

    def no_grad(self):
        return self.t.no_grad()

    def batch_norm(self, x, mean, var, weight, bias, training):
        return self.F.batch_norm(x, mean, var, weight, bias, training=training)

    def attention(self, q, k, v, causal=False):
        """q, k, v: [batch, length, heads, width]. Real Paddle has no causal attention on a CPU: its users add a mask."""
        if not causal or self.fused_causal:
            return self.F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        q, k, v = (self.t.transpose(x, [0, 2, 1, 3]) for x in (q, k, v))
        scores = self.t.matmul(q, k, transpose_y=True) * (1 / math.sqrt(q.shape[-1]))
        mask = self.t.triu(self.t.full([q.shape[2], k.shape[2]], -1e9), 1)
        return self.t.transpose(self.t.matmul(self.F.softmax(scores + mask), v), [0, 2, 1, 3])

    # ---- layers
    def conv(self, inputs, outputs, kernel, stride=1, padding=0, groups=1, bias=True):
        return self.nn.Conv2D(inputs, outputs, kernel, stride, padding, groups=groups, bias_attr=None if bias else False)

    def batch_norm_layer(self, channels):
        return self.nn.BatchNorm2D(channels)

    def max_pool(self, kernel, stride, padding=0):
        return self.nn.MaxPool2D(kernel, stride, padding)

    def average_pool(self):
        return self.nn.AdaptiveAvgPool2D(1)

    def modules(self, items):
        return self.nn.LayerList(items)

    def encoder_layer(self, width, heads, inner, dropout):
        return self.nn.TransformerEncoderLayer(width, heads, inner, dropout=dropout, activation="gelu")

    def lstm(self, inputs, hidden, layers):
        return self.nn.LSTM(inputs, hidden, layers)

    # ---- optimizers
    def optimizer(self, kind, parameters):
        o, parameters = self.t.optimizer, parameters and list(parameters)
        return {"sgd": lambda: o.SGD(0.001, parameters=parameters),
                "momentum": lambda: o.Momentum(0.001, 0.9, parameters=parameters),
                "adam": lambda: o.Adam(0.001, parameters=parameters),
                "adamw": lambda: o.AdamW(0.001, parameters=parameters, weight_decay=0.01)}[kind]()

    def clear_grad(self, optimizer):
        optimizer.clear_grad()

    def set_grad(self, parameter, array):
        (parameter * self.tensor(array)).sum().backward()

    # ---- compiled functions, models, files
    def compile(self, model):
        return self.t.jit.to_static(model)

    def program(self, loss_of, optimizer, *arrays):
        """-> what trains on the arrays: loss_of(variables) and the optimizer as one program of static mode."""
        t, names = self.t, [f"input_{i}" for i in range(len(arrays))]
        t.enable_static()
        main, startup = t.static.Program(), t.static.Program()
        with t.static.program_guard(main, startup):
            loss = loss_of(*(t.static.data(n, list(a.shape), str(a.dtype)) for n, a in zip(names, arrays)))
            self.optimizer(optimizer, None).minimize(loss)
        executor, feed = t.static.Executor(t.CPUPlace()), dict(zip(names, arrays))
        executor.run(startup)
        compiled = t.static.CompiledProgram(main)
        return lambda: float(executor.run(compiled, feed=feed, fetch_list=[loss])[0])

    def evaluate(self, model):
        model.eval()
        return model

    def save(self, value, path):
        self.t.save(value, path)

    def load(self, path):
        return self.t.load(path)

    def export(self, model, shape, dtype, path):
        """-> what runs the exported model on an array (predictor() opens it again)."""
        self.t.jit.save(model, path, input_spec=[self.t.static.InputSpec(list(shape), dtype)])

    def quantize(self, make, batches, path, to):
        """Calibrates what make() builds on the batches and saves it as `to`; `path` is the exported model in float. LSTMs and
        embeddings, which ONNX Runtime's tool quantizes, too, ImperativePTQ leaves in float: `proa quantize` does not."""
        if not batches[0].dtype.kind == "f":
            return self.quantize_file(batches, path, to)
        q = self.t.quantization
        ptq = q.ImperativePTQ(q.PTQConfig(q.AbsmaxQuantizer(), q.PerChannelAbsmaxQuantizer()))
        model = ptq.quantize(make(), inplace=True)
        for x in batches:
            model(self.t.to_tensor(x))
        spec = self.t.static.InputSpec(list(batches[0].shape), str(batches[0].dtype))
        ptq.save_quantized_model(model, to, input_spec=[spec])

    def quantize_file(self, batches, path, to):
        infer = importlib.import_module(self.name + ".inference")
        name = infer.create_predictor(infer.Config(path + ".pdmodel", path + ".pdiparams")).get_input_names()[0]
        command = [os.path.join(os.environ["PROA_BENCHMARKS"], "../bin/proa"), "quantize", path, "--embeddings", "--output", to]
        with tempfile.TemporaryDirectory() as folder:
            for i, x in enumerate(batches):
                np.savez(f"{folder}/{i}.npz", **{name: x})
                command += ["--data", f"{folder}/{i}.npz"]
            subprocess.run(command, check=True, capture_output=True)

    def predictor(self, path, threads, int8=False, bfloat16=False):
        infer = importlib.import_module(self.name + ".inference")
        config = infer.Config(path + ".pdmodel", path + ".pdiparams")
        config.set_cpu_math_library_num_threads(threads)
        config.disable_glog_info()
        if self.name == "paddle":
            config.enable_mkldnn()
        if int8:
            config.enable_mkldnn_int8()
        if bfloat16:
            config.enable_mkldnn_bfloat16()
        p = infer.create_predictor(config)
        into, out = p.get_input_handle(p.get_input_names()[0]), p.get_output_handle(p.get_output_names()[0])

        def run(array):
            into.copy_from_cpu(array)
            p.run()
            return out.copy_to_cpu()
        return run


class Torch:
    name, fused_causal = "torch", True

    def __init__(self, threads):
        import torch
        torch.set_num_threads(threads)
        self.t, self.nn, self.F, self.Module = torch, torch.nn, torch.nn.functional, torch.nn.Module

    def tensor(self, array, grad=False):
        return self.t.tensor(array, requires_grad=grad)

    def clear(self, tensor):
        tensor.grad = None

    def backward(self, out, seed):
        out.backward(seed)

    def permute(self, x, order):
        return x.permute(order)

    def cast(self, x, dtype):
        return x.to(getattr(self.t, dtype))

    def concat(self, parts, axis):
        return self.t.cat(parts, axis)

    def thirds(self, width):
        return (width,)

    def gather(self, x, index):
        return self.t.index_select(x, 0, index)

    def scatter_add(self, x, index, rows):
        return self.t.index_add(x, 0, index, rows)

    def add_(self, x, y):
        return x.add_(y)

    def no_grad(self):
        return self.t.no_grad()

    def batch_norm(self, x, mean, var, weight, bias, training):
        return self.F.batch_norm(x, mean, var, weight, bias, training)

    def attention(self, q, k, v, causal=False):
        out = self.F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal)
        return out.transpose(1, 2)

    def conv(self, inputs, outputs, kernel, stride=1, padding=0, groups=1, bias=True):
        return self.nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=bias)

    def batch_norm_layer(self, channels):
        return self.nn.BatchNorm2d(channels)

    def max_pool(self, kernel, stride, padding=0):
        return self.nn.MaxPool2d(kernel, stride, padding)

    def average_pool(self):
        return self.nn.AdaptiveAvgPool2d(1)

    def modules(self, items):
        return self.nn.ModuleList(items)

    def encoder_layer(self, width, heads, inner, dropout):
        return self.nn.TransformerEncoderLayer(width, heads, inner, dropout=dropout, activation="gelu", batch_first=True)

    def lstm(self, inputs, hidden, layers):
        return self.nn.LSTM(inputs, hidden, layers, batch_first=True)

    def optimizer(self, kind, parameters):
        o = self.t.optim
        return {"sgd": lambda: o.SGD(parameters, 0.001), "momentum": lambda: o.SGD(parameters, 0.001, momentum=0.9),
                "adam": lambda: o.Adam(parameters, 0.001),
                "adamw": lambda: o.AdamW(parameters, 0.001, weight_decay=0.01)}[kind]()

    def clear_grad(self, optimizer):
        optimizer.zero_grad()

    def set_grad(self, parameter, array):
        parameter.grad = self.tensor(array)

    def compile(self, model):
        return self.t.compile(model)

    def evaluate(self, model):
        return model.eval()

    def save(self, value, path):
        self.t.save(value, path)

    def load(self, path):
        return self.t.load(path)

    def export(self, model, shape, dtype, path):
        example = self.t.zeros(shape, dtype=getattr(self.t, dtype))
        self.t.onnx.export(model, (example,), path + ".onnx", input_names=["x"], dynamo=False)


    def quantize(self, make, batches, path, to):
        """ONNX Runtime's own tool, on the exported model."""
        from onnxruntime import quantization as q
        if "lstm" in path:
            q.quantize_dynamic(path + ".onnx", to + ".onnx")
            return

        class Batches(q.CalibrationDataReader):
            def __init__(self):
                self.left = list(batches)

            def get_next(self):
                return {"x": self.left.pop()} if self.left else None
        q.quantize_static(path + ".onnx", to + ".onnx", Batches(), quant_format=q.QuantFormat.QDQ, per_channel=True,
                          activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8)


class OnnxRuntime:
    """Runs files that Torch exported, and nothing else."""
    name = "onnxruntime"

    def __init__(self):
        self.t = importlib.import_module("onnxruntime")

    def predictor(self, path, threads, int8=False):
        options = self.t.SessionOptions()
        options.intra_op_num_threads = threads
        session = self.t.InferenceSession(path + ".onnx", options, providers=["CPUExecutionProvider"])
        return lambda array: session.run(None, {"x": array})[0]


def framework(name, threads):
    """name: proa, paddle, torch or onnxruntime; what stands behind a "+" chooses a way to run it and is the workloads'
    affair."""
    base = name.split("+")[0]
    return Torch(threads) if base == "torch" else OnnxRuntime() if base == "onnxruntime" else Paddle(base)


def random(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype("float32")


def integers(high, *shape, seed=0):
    return np.random.RandomState(seed).randint(0, high, shape).astype("int64")
