"""Callbacks of Model.fit, evaluate and predict: progress bar, checkpoints, early stopping, schedules, logging."""
import numbers
import os
import time
import warnings

from .._errors import compared
from ..io.batch_sampler import rank_and_size
from .progressbar import ProgressBar


def _first_rank():
    return rank_and_size()[0] == 0


class Callback:
    """Base of callbacks: every hook does nothing. params: batch_size, epochs, steps, verbose, metrics.

    As in Paddle, ProgBarLogger, ModelCheckpoint and VisualDL have neither model nor params before a Model sets them."""

    def __init__(self):
        self.model = None
        self.params = {}

    def set_params(self, params):
        self.params = params

    def set_model(self, model):
        self.model = model

    def on_train_begin(self, logs=None):
        """Training begins."""

    def on_train_end(self, logs=None):
        """Training has ended."""

    def on_eval_begin(self, logs=None):
        """Evaluation begins; logs: steps, metrics."""

    def on_eval_end(self, logs=None):
        """Evaluation has ended; logs: loss, metrics, batch_size."""

    def on_predict_begin(self, logs=None):
        """Prediction begins."""

    def on_predict_end(self, logs=None):
        """Prediction has ended."""

    def on_epoch_begin(self, epoch, logs=None):
        """An epoch begins."""

    def on_epoch_end(self, epoch, logs=None):
        """An epoch has ended."""

    def on_train_batch_begin(self, step, logs=None):
        """A training batch begins."""

    def on_train_batch_end(self, step, logs=None):
        """A training batch has ended."""

    def on_eval_batch_begin(self, step, logs=None):
        """An evaluation batch begins."""

    def on_eval_batch_end(self, step, logs=None):
        """An evaluation batch has ended."""

    def on_predict_batch_begin(self, step, logs=None):
        """A prediction batch begins."""

    def on_predict_batch_end(self, step, logs=None):
        """A prediction batch has ended."""


class CallbackList:
    """Calls a hook of every callback, in order. mode: train, eval or predict."""

    def __init__(self, callbacks=None):
        self.callbacks = list(callbacks or ())

    def append(self, callback):
        self.callbacks.append(callback)

    def __iter__(self):
        return iter(self.callbacks)

    def _call(self, name, *args):
        for c in self.callbacks:
            getattr(c, name)(*args)

    def set_params(self, params):
        self._call("set_params", params)

    def set_model(self, model):
        self._call("set_model", model)

    def on_begin(self, mode, logs=None):
        self._call(f"on_{mode}_begin", logs)

    def on_end(self, mode, logs=None):
        self._call(f"on_{mode}_end", logs)

    def on_epoch_begin(self, epoch=None, logs=None):
        self._call("on_epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch=None, logs=None):
        self._call("on_epoch_end", epoch, logs)

    def on_batch_begin(self, mode, step=None, logs=None):
        self._call(f"on_{mode}_batch_begin", step, logs)

    def on_batch_end(self, mode, step=None, logs=None):
        self._call(f"on_{mode}_batch_end", step, logs)


def config_callbacks(callbacks=None, model=None, batch_size=None, epochs=None, steps=None, log_freq=2, verbose=2,
                     save_freq=1, save_dir=None, metrics=None, mode="train"):
    """The user's callbacks with the usual ones beside them."""
    chosen = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
    if verbose and not any(isinstance(c, ProgBarLogger) for c in chosen):
        chosen.insert(0, ProgBarLogger(log_freq, verbose=verbose))
    if not any(isinstance(c, ModelCheckpoint) for c in chosen):
        chosen.append(ModelCheckpoint(save_freq, save_dir))
    for c in chosen:
        if isinstance(c, EarlyStopping):
            c.save_dir = save_dir
    if not any(isinstance(c, LRScheduler) for c in chosen):
        chosen.append(LRScheduler())
    result = CallbackList(chosen)
    result.set_model(model)
    result.set_params({"batch_size": batch_size, "epochs": epochs, "steps": steps, "verbose": verbose,
                       "metrics": (metrics or []) if mode != "test" else []})
    return result


class _Phase:
    """What ProgBarLogger knows of one phase: its steps, what to show, and its times."""

    def __init__(self, steps, metrics, verbose):
        self.steps, self.metrics, self.verbose = steps, metrics, verbose
        self.step = self.samples = 0
        self.bar = ProgressBar(num=steps, verbose=verbose)
        self.data_time = self.batch_time = 0.0
        self.count = self.timed_samples = 0
        self.began = self.loaded = time.time()

    def batch_begin(self):
        self.loaded = time.time()
        self.data_time += self.loaded - self.began

    def batch_end(self, logs):
        samples = logs.get("batch_size", 1)
        self.step += 1
        self.batch_time += time.time() - self.loaded
        self.count += 1
        self.samples += samples
        self.timed_samples += samples

    def show(self, logs):
        values = [(k, logs[k]) for k in self.metrics if k in logs]
        if self.verbose == 3:
            count, samples, total = self.count or 1.0, self.timed_samples or 1.0, self.data_time + self.batch_time
            values += [("avg_reader_cost", f"{self.data_time / count:.5f} sec"),
                       ("avg_batch_cost", f"{self.batch_time / count:.5f} sec"),
                       ("ips", f"{samples / total if total else 0.0:.5f} samples/sec")]
            self.count = self.timed_samples = 0
            self.data_time = self.batch_time = 0.0
        self.bar.update(self.step, values)


class ProgBarLogger(Callback):
    """Prints loss and metrics every log_freq steps. verbose 0: nothing, 1: a bar, 2: lines, 3: lines and times."""

    def __init__(self, log_freq=1, verbose=2):
        self.log_freq = log_freq
        self.verbose = verbose
        self.epochs = None
        self._train = None

    def _is_print(self):
        return self.verbose and _first_rank()

    def _batch_end(self, phase, logs):
        phase.batch_end(logs)
        if self._is_print() and phase.step % self.log_freq == 0 and (phase.steps is None or phase.step < phase.steps):
            phase.show(logs)
        phase.began = time.time()

    def on_train_begin(self, logs=None):
        self.epochs = self.params["epochs"]
        if self._is_print():
            print("The loss value printed in the log is the current step, and the metric is the average value of "
                  "previous steps.")

    def on_epoch_begin(self, epoch=None, logs=None):
        if self.epochs and self._is_print():
            print(f"Epoch {epoch + 1}/{self.epochs}")
        self._train = _Phase(self.params["steps"], self.params["metrics"], self.verbose)

    def on_train_batch_begin(self, step, logs=None):
        self._train.batch_begin()

    def on_train_batch_end(self, step, logs=None):
        logs = logs or {}
        self._batch_end(self._train, logs)

    def on_epoch_end(self, epoch, logs=None):
        if self._is_print() and self._train is not None and self._train.steps is not None:
            self._train.show(logs or {})

    def on_eval_begin(self, logs=None):
        logs = {} if logs is None else logs
        self._eval = _Phase(logs.get("steps"), logs.get("metrics", []), self.verbose)
        if self._is_print():
            print("Eval begin...")

    def on_eval_batch_begin(self, step, logs=None):
        self._eval.batch_begin()

    def on_eval_batch_end(self, step, logs=None):
        logs = logs or {}
        self._batch_end(self._eval, logs)

    def on_eval_end(self, logs=None):
        if self._is_print() and self._eval.steps is not None:
            self._eval.show(logs or {})
            print(f"Eval samples: {self._eval.samples}")

    def on_predict_begin(self, logs=None):
        logs = {} if logs is None else logs
        self._test = _Phase(logs.get("steps"), logs.get("metrics", []), self.verbose)
        if self._is_print():
            print("Predict begin...")

    def on_predict_batch_begin(self, step, logs=None):
        self._test.batch_begin()

    def on_predict_batch_end(self, step, logs=None):
        logs = logs or {}
        self._batch_end(self._test, logs)

    def on_predict_end(self, logs=None):
        if self._is_print():
            if self._test.step % self.log_freq != 0 or self.verbose == 1:
                self._test.show(logs or {})
            print(f"Predict samples: {self._test.samples}")


class ModelCheckpoint(Callback):
    """Saves the model to save_dir/<epoch> every save_freq epochs, and at the end to save_dir/final."""

    def __init__(self, save_freq=1, save_dir=None):
        self.save_freq = save_freq
        self.save_dir = save_dir

    def on_epoch_begin(self, epoch=None, logs=None):
        self.epoch = epoch

    def _save(self, name):
        path = f"{self.save_dir}/{name}"
        print(f"save checkpoint at {os.path.abspath(path)}")
        self.model.save(path)

    def _is_save(self):
        return self.model and self.save_dir and _first_rank()

    def on_epoch_end(self, epoch, logs=None):
        if self._is_save() and self.epoch % self.save_freq == 0:
            self._save(epoch)

    def on_train_end(self, logs=None):
        if self._is_save():
            self._save("final")


class LRScheduler(Callback):
    """Steps the optimizer's scheduler, after each batch or each epoch."""

    def __init__(self, by_step=True, by_epoch=False):
        if by_step and by_epoch:
            raise ValueError("LRScheduler: by_step and by_epoch cannot both be True")
        super().__init__()
        self.by_step = by_step
        self.by_epoch = by_epoch

    def _step(self):
        from ..optimizer.lr import LRScheduler as Schedule
        rate = getattr(self.model._optimizer, "_learning_rate", None)
        if isinstance(rate, Schedule):
            rate.step()

    def on_epoch_end(self, epoch, logs=None):
        if self.by_epoch:
            self._step()

    def on_train_batch_end(self, step, logs=None):
        if self.by_step:
            self._step()


def _mode(owner, mode, monitor):
    """min or max; auto is max for accuracies."""
    for given in (mode, *(monitor if isinstance(monitor, (list, tuple)) else ())):
        compared(given)
    if mode not in ("auto", "min", "max"):
        warnings.warn(f"{owner}: mode {mode!r} is unknown, auto is used", stacklevel=3)
        mode = "auto"
    return ("max" if "acc" in monitor else "min") if mode == "auto" else mode


def _monitored(owner, logs, monitor):
    """The monitored number, or None (with a warning if it is not there)."""
    compared(logs)
    if logs is None or monitor not in logs:
        warnings.warn(f"{owner}: monitor {monitor!r} is neither the loss nor a metric", stacklevel=3)
        return None
    value = logs[monitor]
    if isinstance(value, (list, tuple)):
        return value[0]
    return value if isinstance(value, numbers.Number) else None


class EarlyStopping(Callback):
    """Stops training when the monitored value has not improved for `patience` evaluations."""

    def __init__(self, monitor="loss", mode="auto", patience=0, verbose=1, min_delta=0, baseline=None,
                 save_best_model=True):
        super().__init__()
        self.monitor, self.mode = monitor, _mode("EarlyStopping", mode, monitor)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.min_delta = abs(min_delta)
        self.save_best_model, self.save_dir = save_best_model, None
        self.wait_epoch = self.stopped_epoch = 0

    def on_train_begin(self, logs=None):
        self.wait_epoch = 0
        worst = float("-inf") if self.mode == "max" else float("inf")
        self.best_value = worst if self.baseline is None else self.baseline

    def on_eval_end(self, logs=None):
        current = _monitored("EarlyStopping", logs, self.monitor)
        if current is None:
            return
        if current - self.min_delta > self.best_value if self.mode == "max" else \
                current + self.min_delta < self.best_value:
            self.best_value, self.wait_epoch = current, 0
            if self.save_best_model and self.save_dir is not None:
                self.model.save(os.path.join(self.save_dir, "best_model"))
        else:
            self.wait_epoch += 1
        if self.wait_epoch >= self.patience:
            self.model.stop_training = True
            if self.verbose > 0:
                print(f"Epoch {self.stopped_epoch + 1}: Early stopping.")
                if self.save_best_model and self.save_dir is not None:
                    best = os.path.abspath(os.path.join(self.save_dir, "best_model"))
                    print(f"Best checkpoint has been saved at {best}")
        self.stopped_epoch += 1


class ReduceLROnPlateau(Callback):
    """Multiplies the learning rate by factor when the monitored value has not improved for a while."""

    def __init__(self, monitor="loss", factor=0.1, patience=10, verbose=1, mode="auto", min_delta=1e-4, cooldown=0,
                 min_lr=0):
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor must be below 1, got {factor}")
        super().__init__()
        self.monitor, self.factor, self.patience, self.verbose = monitor, factor, patience, verbose
        self.mode, self.min_delta, self.cooldown, self.min_lr = mode, min_delta, cooldown, min_lr
        self.epoch = 0
        self._reset()

    def _reset(self):
        self.mode = _mode("ReduceLROnPlateau", self.mode, self.monitor)
        self.best = float("-inf") if self.mode == "max" else float("inf")
        self.cooldown_counter = self.wait = 0

    def on_train_begin(self, logs=None):
        self._reset()

    def on_eval_end(self, logs=None):
        current = _monitored("ReduceLROnPlateau", logs, self.monitor)
        if current is None:
            return
        optimizer = self.model._optimizer
        if not isinstance(optimizer._learning_rate, float):
            warnings.warn("ReduceLROnPlateau: the optimizer's learning rate must be a float, got "
                          f"{type(optimizer._learning_rate).__name__}", stacklevel=2)
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if current > self.best + self.min_delta if self.mode == "max" else current < self.best - self.min_delta:
            self.best, self.wait = current, 0
        elif not self.in_cooldown():
            self.wait += 1
            old = optimizer.get_lr()
            if self.wait >= self.patience and old > self.min_lr:
                new = max(old * self.factor, self.min_lr)
                optimizer._learning_rate = new
                if self.verbose > 0 and _first_rank():
                    print(f"\nEpoch {self.epoch + 1}: ReduceLROnPlateau reducing learning rate to {new}.")
                self.cooldown_counter, self.wait = self.cooldown, 0
        self.epoch += 1

    def in_cooldown(self):
        return self.cooldown_counter > 0


def _package(name, callback):
    import importlib
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"{callback} needs the package {name}: pip install {name}") from None


class _Recorder(Callback):
    """Base of the callbacks that record scalars elsewhere: subclasses have _open(), _record(mode, step, scalars), _close()."""

    def on_train_begin(self, logs=None):
        self.train_metrics, self._in_fit, self._train_step, self._epoch = self.params["metrics"], True, 0, 0

    def on_epoch_begin(self, epoch=None, logs=None):
        self.steps, self._epoch = self.params["steps"], epoch

    def _update(self, mode, step, logs):
        if not _first_rank():
            return
        self._open()
        scalars = {}
        for name in getattr(self, f"{mode}_metrics"):
            value = (logs or {}).get(name)
            value = value[0] if isinstance(value, (list, tuple)) else value
            if isinstance(value, numbers.Number):
                scalars[f"{mode}/{name}"] = value
        self._record(mode, step, scalars)

    def on_train_batch_end(self, step, logs=None):
        self._train_step += 1
        self._update("train", self._train_step, logs)

    def on_eval_begin(self, logs=None):
        self.eval_metrics = (logs or {}).get("metrics", [])

    def on_eval_end(self, logs=None):
        self._update("eval", getattr(self, "_epoch", 0), logs)
        if not getattr(self, "_in_fit", False):
            self._close()

    def on_train_end(self, logs=None):
        self._close()


class VisualDL(_Recorder):
    """Writes loss and metrics for VisualDL into log_dir. Needs the package visualdl."""

    def __init__(self, log_dir):
        self.log_dir = log_dir
        self._writer = None

    def _open(self):
        if self._writer is None:
            self._writer = _package("visualdl", "VisualDL").LogWriter(self.log_dir)

    def _record(self, mode, step, scalars):
        for tag, value in scalars.items():
            self._writer.add_scalar(tag=tag, step=step, value=value)

    def _close(self):
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class WandbCallback(_Recorder):
    """Logs loss and metrics to Weights & Biases. Needs the package wandb."""

    def __init__(self, project=None, entity=None, name=None, dir=None, mode=None, job_type=None, **kwargs):
        super().__init__()
        self.wandb = _package("wandb", "WandbCallback")
        self.wandb_args = {"project": project, "name": name, "entity": entity, "dir": dir, "mode": mode,
                           "job_type": job_type, **kwargs}
        self._run = None
        self.run

    @property
    def run(self):
        """The wandb run: one that is going on, or a new one."""
        if self._run is None and _first_rank():
            self._run = self.wandb.run or self.wandb.init(**self.wandb_args)
        return self._run

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if _first_rank():
            self.run.define_metric("train/step")
            self.run.define_metric("train/*", step_metric="train/step")
            self.run.define_metric("epoch")
            self.run.define_metric("eval/*", step_metric="epoch")

    def _open(self):
        """The run is there: the constructor opens it."""

    def _record(self, mode, step, scalars):
        self.run.log({"train/step" if mode == "train" else "epoch": step, **scalars})

    def _close(self):
        if self._run is not None:
            self._run.finish()
            self._run = None
