"""paddle.Model, its callbacks and what they print; summary and flops."""
import contextlib
import io
import os
import re
import tempfile

import numpy as np
import paddle
from paddle import nn
from paddle.static import InputSpec

from parity import array, case, fill, raised


class Points(paddle.io.Dataset):
    def __init__(self, n=24):
        self.x = array(n, 4).astype("float32")
        self.y = (self.x.sum(1) > 0).astype("int64").reshape(n, 1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def ready(rate=0.1, metrics=True, **kwargs):
    net = fill(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
    model = paddle.Model(net, InputSpec([None, 4], "float32", "x"), InputSpec([None, 1], "int64", "y"))
    optimizer = paddle.optimizer.Adam(rate, parameters=net.parameters())
    model.prepare(optimizer, nn.CrossEntropyLoss(), paddle.metric.Accuracy() if metrics else None, **kwargs)
    return model


def plain(value):
    """Paddle's metrics are NumPy's float64, its counts NumPy's int64."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.item() if isinstance(value, (np.float64, np.int64)) else value


def printed(fn):
    """The text that fn prints, without times (and the blanks that follow them), and two digits of four."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        fn()
    text = re.sub(r" - \d+(s|ms|us)/step", " - T", re.sub(r"ETA: [\d:s]+", "ETA: E", out.getvalue()))
    text = re.sub(r"(cost: |ips: )[\d.]+", r"\1N", re.sub(r"at /\S*/", "at ", text)).replace("\b", "")
    return re.sub(r" +([\r\n]|\Z)", r"\1", re.sub(r"(\.\d\d)\d\d\b", r"\1", text))


@case("paddle.Model", "paddle.Model.prepare", "paddle.Model.train_batch", "paddle.Model.eval_batch",
      "paddle.Model.predict_batch", "paddle.Model.parameters", tol=1e-4)
def batches():
    model, data = ready(), Points()
    return plain([model.train_batch([data.x], [data.y]), model.train_batch([data.x], [data.y], update=False),
            model.train_batch([data.x], [data.y]), model.eval_batch([data.x], [data.y]),
            model.predict_batch([data.x]), [p.shape for p in model.parameters()],
            ready(metrics=False).train_batch([data.x], [data.y])])


@case("paddle.Model.fit", "paddle.Model.evaluate", "paddle.Model.predict", tol=1e-4)
def loops():
    model, data = ready(), Points()
    model.fit(data, data, batch_size=8, epochs=3, verbose=0, shuffle=True)
    result = [plain(model.evaluate(data, batch_size=5, verbose=0)), model.predict(data, batch_size=10, verbose=0),
              model.predict(data, batch_size=10, stack_outputs=True, verbose=0)]
    model.fit(paddle.io.DataLoader(data, batch_size=6), epochs=1, verbose=0, accumulate_grad_batches=3)
    model.fit(data, batch_size=(6, 3), eval_data=data, verbose=0, num_iters=2, shuffle=False)
    return result + [plain(model.evaluate(data, batch_size=5, verbose=0, num_iters=2))]


PROGRESS = [f"paddle.callbacks.ProgBarLogger.on_{hook}_{when}" for when in ("begin", "end")
            for hook in ("epoch", "train", "eval", "predict", "train_batch", "eval_batch", "predict_batch")
            if (hook, when) != ("train", "end")]    # fit, evaluate and predict call these


@case("paddle.callbacks.ProgBarLogger", "paddle.callbacks.ProgBarLogger.on_train_end", *PROGRESS,
      "paddle.callbacks.ModelCheckpoint", "paddle.callbacks.ModelCheckpoint.on_epoch_begin",
      "paddle.callbacks.ModelCheckpoint.on_epoch_end", "paddle.callbacks.ModelCheckpoint.on_train_end", tol=1e-4)
def what_is_printed():
    data, result = Points(), []
    with tempfile.TemporaryDirectory() as folder:
        for verbose in (1, 2, 3):
            model = ready()
            result.append(printed(lambda: model.fit(data, data, batch_size=5, epochs=2, log_freq=2, verbose=verbose,
                                                    shuffle=False, save_dir=folder)))
            result.append(printed(lambda: model.evaluate(data, batch_size=5, log_freq=2, verbose=verbose)))
            result.append(printed(lambda: model.predict(data, batch_size=5, verbose=verbose)))
        return result + [sorted(os.listdir(folder))]


@case("paddle.Model.save", "paddle.Model.load", tol=1e-4)
def saved_and_loaded():
    data = Points()
    with tempfile.TemporaryDirectory() as folder:
        first = ready()
        first.fit(data, batch_size=8, verbose=0, shuffle=False)
        first.save(f"{folder}/m")
        second = ready()
        second.load(f"{folder}/m", reset_optimizer=True)
        other = paddle.Model(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)))
        return [sorted(os.listdir(folder)), second.predict_batch([data.x]),
                raised(lambda: other.load(f"{folder}/m"), ValueError),
                raised(lambda: other.load(f"{folder}/absent"), AssertionError)]


@case("paddle.callbacks.EarlyStopping", "paddle.callbacks.EarlyStopping.on_eval_end",
      "paddle.callbacks.EarlyStopping.on_train_begin", "paddle.callbacks.ReduceLROnPlateau",
      "paddle.callbacks.ReduceLROnPlateau.on_eval_end", "paddle.callbacks.ReduceLROnPlateau.on_train_begin",
      "paddle.callbacks.ReduceLROnPlateau.in_cooldown", tol=1e-4)
def stopping_and_plateaus():
    data, result = Points(), []
    for callback in (paddle.callbacks.EarlyStopping("loss", patience=1, baseline=0.1),
                     paddle.callbacks.EarlyStopping("acc", patience=2, min_delta=0.5),
                     paddle.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=1.0, cooldown=1)):
        model = ready()
        result.append(printed(lambda: model.fit(data, data, batch_size=12, epochs=5, verbose=0, shuffle=False,
                                                callbacks=callback)))
        result.append(float(model._optimizer.get_lr()))
    return result + [callback.in_cooldown(), raised(lambda: paddle.callbacks.ReduceLROnPlateau(factor=1.0), ValueError)]


@case("paddle.callbacks.LRScheduler", "paddle.callbacks.LRScheduler.on_epoch_end",
      "paddle.callbacks.LRScheduler.on_train_batch_end", tol=1e-4)
def schedules():
    data, rates = Points(), []
    for callback in (None, paddle.callbacks.LRScheduler(by_step=False, by_epoch=True)):
        model = ready(paddle.optimizer.lr.StepDecay(0.1, 2, 0.5))
        model.fit(data, batch_size=6, epochs=2, verbose=0, shuffle=False, callbacks=callback)
        rates.append(model._optimizer.get_lr())
    return rates + [raised(lambda: paddle.callbacks.LRScheduler(True, True), ValueError)]


@case(*[f"paddle.callbacks.VisualDL{n}" for n in ("", ".on_epoch_begin", ".on_eval_begin", ".on_eval_end",
                                                  ".on_train_batch_end", ".on_train_begin", ".on_train_end")], tol=1e-4)
def visualdl():
    import sys
    import types
    written = []

    class LogWriter:
        def __init__(self, folder):
            written.append(["open", folder])

        def add_scalar(self, tag, step, value):
            written.append([tag, step, float(value)])

        def close(self):
            written.append("close")

    sys.modules["visualdl"] = types.SimpleNamespace(LogWriter=LogWriter)
    model, data, note = ready(), Points(), paddle.callbacks.VisualDL("logs")
    model.fit(data, data, batch_size=12, epochs=2, verbose=0, shuffle=False, callbacks=note)
    model.evaluate(data, batch_size=12, verbose=0, callbacks=paddle.callbacks.VisualDL("more"))
    return written


@case("paddle.callbacks.Callback", *[f"paddle.callbacks.Callback.{n}" for n in (
    "set_params", "set_model", "on_train_begin", "on_train_end", "on_eval_begin", "on_eval_end", "on_predict_begin",
    "on_predict_end", "on_epoch_begin", "on_epoch_end", "on_train_batch_begin", "on_train_batch_end",
    "on_eval_batch_begin", "on_eval_batch_end", "on_predict_batch_begin", "on_predict_batch_end")], tol=1e-4)
def hooks_called():
    calls = []

    class Note(paddle.callbacks.Callback):
        def __getattribute__(self, name):
            if name.startswith("on_"):
                # Paddle's logs of other hooks also hold what the process ran before
                full = name in ("on_train_batch_end", "on_eval_batch_end", "on_eval_end", "on_epoch_end")
                return lambda *args: calls.append((name, [(sorted(a) if full else "dict") if isinstance(a, dict) else a
                                                          for a in args]))
            return super().__getattribute__(name)

        def set_params(self, params):
            calls.append(("params", {k: params[k] for k in sorted(params)}))

    model, data = ready(), Points()
    model.fit(data, data, batch_size=12, epochs=2, verbose=0, shuffle=False, callbacks=[Note()])
    model.predict(data, batch_size=12, verbose=0, callbacks=Note())
    return calls


@case("paddle.summary", "paddle.Model.summary")
def summaries():
    net = nn.Sequential(nn.Conv2D(1, 6, 3), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Flatten(), nn.Linear(6 * 13 * 13, 10))
    result = [printed(lambda: result_of.append(paddle.summary(net, (1, 1, 28, 28)))) for result_of in ([],)]
    return [re.sub(r"-\d+ ", "-N ", re.sub(" +", " ", result[0])), plain(paddle.summary(net, (None, 1, 28, 28))),
            plain(paddle.summary(net, input=paddle.ones([2, 1, 28, 28]))), plain(ready().summary()),
            raised(lambda: paddle.summary(net), ValueError),
            raised(lambda: paddle.summary(net, (None, None, 28, 28)), ValueError)]


@case("paddle.flops")
def multiply_adds():
    net = nn.Sequential(nn.Conv2D(1, 6, 3, stride=2), nn.BatchNorm2D(6), nn.ReLU(), nn.AdaptiveAvgPool2D(2),
                        nn.Flatten(), nn.Linear(24, 10))

    def double(layer, x, y):
        layer.total_ops += 2 * int(np.prod(y.shape))

    return [paddle.flops(net, [1, 1, 28, 28]), paddle.flops(net, [2, 1, 28, 28], {nn.Flatten: double}),
            re.sub(" +", " ", printed(lambda: paddle.flops(net, [1, 1, 28, 28], print_detail=True))).count("|")]
