"""Family `inference`: batch 1, float32. Proa and Paddle run models that they exported, through their predictors, and Proa
also from C (predict.c); ONNX Runtime runs what PyTorch exported; PyTorch runs eagerly. Decoding makes one token after the
other with a cache of keys and values, eagerly. INT8 rows: what ImperativePTQ (networks of images) or `proa quantize --embeddings` calibrated beside what ONNX Runtime's
quantize_static did (QDQ, unsigned activations, weights by channel) or, LSTMs, quantize_dynamic. BF16 rows: what
enable_mkldnn_bfloat16 makes of the float32 models. Over an adapter of frameworks.py."""
import json
import os
import subprocess

import numpy as np
from common import Row, Unit
from frameworks import integers, random
import models

PROMPT, NEW = 64, 32
INT8, CALIBRATION = "_int8", 8  # of file names; batches


def networks(tiny):
    """name -> file name, how it is built, its input's shape and dtype."""
    small = {"blocks": [1, 1], "width": 8} if tiny else {}
    side, length = (32, 8) if tiny else (224, 128)
    settings = ((1, 16, 1, 1), (6, 24, 1, 2)) if tiny else None
    lstm, tokens = ({"width": 8, "hidden": 8}, 4) if tiny else ({}, 64)
    bert = {"vocabulary": 50, "width": 16, "layers": 1, "heads": 2} if tiny else {}
    return {"LeNet": ("lenet", models.lenet, (1, 1, 28, 28), "float32"),
            "ResNet-50, 224×224": ("resnet50", lambda fw: models.resnet(fw, 50, 1000, **small), (1, 3, side, side),
                                   "float32"),
            "MobileNetV2, 224×224": ("mobilenet_v2", lambda fw: models.mobilenet_v2(fw, 1000, settings),
                                     (1, 3, side, side), "float32"),
            "BERT-base, 128 tokens": ("bert", lambda fw: models.bert(fw, length=length, **bert), (1, length), "int64"),
            **{f"LSTM, 2×512, {batch}×64 tokens": (f"lstm{batch}", lambda fw: models.lstm(fw, **lstm), (batch, tokens), "int64")
               for batch in (1, 32)}}


def example(shape, dtype):
    return random(*shape) if dtype == "float32" else integers(50, *shape)


def prepare(fw, folder, tiny):
    """Exports every network, and calibrates it where the framework can; what is there stays."""
    for name, build, shape, dtype in networks(tiny).values():
        path = os.path.join(folder, name)
        if not os.path.exists(path + ".done"):
            fw.export(fw.evaluate(build(fw)), shape, dtype, path)
            open(path + ".done", "w").close()
        if name != "lenet" and fw.name != "paddle" and not os.path.exists(path + INT8 + ".done"):
            fw.quantize(lambda: fw.evaluate(build(fw)), [example(shape, dtype) for _ in range(CALIBRATION)], path, path + INT8)
            open(path + INT8 + ".done", "w").close()


class Predict:
    """predict.c: a process of its own, which times itself."""

    def __init__(self, path, threads, shape, dtype, mode="float"):
        program = os.path.join(os.environ["PROA_BENCHMARKS"], "predict")
        self.command = [program, path, str(threads), "", mode, dtype, *map(str, shape)]

    def measure(self, seconds):
        self.command[3] = str(seconds)
        done = subprocess.run(self.command, text=True, capture_output=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"predict ended with status {done.returncode}")
        return json.loads(done.stdout)


def run_row(file_name, build, shape, dtype):
    def make(fw):
        path = os.path.join(fw.folder, file_name)
        if fw.way == "proa+c":
            return Predict(path, fw.threads, shape, dtype)
        x = example(shape, dtype)
        if fw.name == "torch":
            model = fw.evaluate(build(fw))
            model = fw.compile(model) if fw.way == "torch+compile" else model

            def run(array):
                with fw.no_grad():
                    return model(fw.t.from_numpy(array)).numpy()
        else:
            run = fw.predictor(path, fw.threads)
        return lambda: run(x)
    return Row("run", make)


def int8_row(file_name, shape, dtype):
    def make(fw):
        x = example(shape, dtype)
        path = os.path.join(fw.folder, file_name + INT8)
        if fw.way == "proa+c":
            return Predict(path, fw.threads, shape, dtype, "int8")
        run = fw.predictor(path, fw.threads, int8=True)
        return lambda: run(x)
    return Row("run", make)


def bfloat16_row(file_name, shape, dtype):
    def make(fw):
        run, x = fw.predictor(os.path.join(fw.folder, file_name), fw.threads, bfloat16=True), example(shape, dtype)
        return lambda: run(x)
    return Row("run", make)


def decode_row(tiny):
    settings = {"vocabulary": 65, "width": 16, "layers": 1, "heads": 2} if tiny else {"vocabulary": 65}
    prompt, new = (4, 4) if tiny else (PROMPT, NEW)

    def make(fw):
        model = fw.evaluate(models.decoder(fw, length=prompt + new, **settings))
        start = fw.tensor(integers(65, 1, prompt))

        def call():
            caches = [[] for _ in range(settings.get("layers", 6))]
            with fw.no_grad():
                token = model(start, caches)[:, -1].argmax(-1).reshape([1, 1])
                for _ in range(new - 1):
                    token = model(token, caches)[:, -1].argmax(-1).reshape([1, 1])
            return int(token)
        return call
    return Row("token", make, per=new)


def check(fw, folder, tiny):
    """The exported LeNet's outputs have ten finite numbers: what is timed works."""
    out = np.asarray(fw.predictor(os.path.join(folder, "lenet"), 1)(example((1, 1, 28, 28), "float32")))
    return out.shape == (1, 10) and bool(np.isfinite(out).all())


def units(tiny=False):
    found = [Unit(name, (run_row(*parts),), 0.3) for name, parts in networks(tiny).items()]
    found += [Unit(f"{name}, INT8", (int8_row(parts[0], *parts[2:]),), 0.3, skip=("paddle", "torch", "torch+compile"))
              for name, parts in networks(tiny).items() if parts[0] != "lenet"]
    found += [Unit(f"{name}, BF16", (bfloat16_row(parts[0], *parts[2:]),), 0.3,
                   skip=("paddle", "torch", "torch+compile", "proa+c", "onnxruntime"))
              for name, parts in networks(tiny).items() if parts[0] in ("resnet50", "bert")]
    return found + [Unit("decoding, 6×384, a token", (decode_row(tiny),), 0.3, skip=("onnxruntime", "proa+c"))]
